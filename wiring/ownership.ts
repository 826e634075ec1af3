import type { Executor, Metadata } from "../controller/backend.ts";
import type { Instance } from "../controller/model/ids.ts";
import {
  buildMetadata,
  metadataKeys,
  parseMetadata,
  withSignature,
} from "../controller/model/metadata.ts";
import { signMetadata, verifyMetadata } from "../controller/model/signature.ts";
import type { Identified } from "../controller/strangers.ts";
import type { Ownership } from "../controller/worker.ts";
import type { Secret } from "../lib/secret.ts";

/** Labels, signature and reading back of executors, for one instance of this program. */
export function createOwnership(options: {
  readonly keys: readonly Secret[];
  readonly prefix: string;
  readonly instance: Instance;
  readonly trustDomain: string;
}): Ownership & { identify(executor: Executor): Identified } {
  const { keys, prefix, instance } = options;
  const [key] = keys;
  if (key === undefined) throw new TypeError("Sign executors: there is no capability key");
  const signatureOf = (metadata: Metadata) =>
    metadata.annotations[metadataKeys(prefix).annotations.signature] ?? null;

  return {
    compose(name, info, nonce) {
      const metadata = buildMetadata(info, { prefix, instance });
      const signature = signMetadata(key, { name, metadata, nonce, prefix });
      return Promise.resolve(withSignature(metadata, { prefix, signature }));
    },
    verify(name, metadata, nonce) {
      const signature = signatureOf(metadata);
      return Promise.resolve(verifyMetadata(keys, { name, metadata, nonce, prefix, signature }));
    },
    identify(executor) {
      const stated = executor.metadata.labels[metadataKeys(prefix).labels.instance];
      if (stated !== undefined && stated !== instance) {
        return { kind: "foreign", why: `belongs to instance "${stated}", this is "${instance}"` };
      }
      // The backend knows what is wrong with what it holds; what could be read of it does not tell.
      const { waiting } = executor;
      if (waiting?.code === "unreadable") return { kind: "unknown", why: waiting.detail };
      const parsed = parseMetadata(executor.metadata, options);
      return parsed.kind === "parsed"
        ? { kind: "ours", info: parsed.info }
        : { kind: "unknown", why: parsed.detail };
    },
  };
}
