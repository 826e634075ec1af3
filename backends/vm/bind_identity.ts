import { type Backend, BackendError } from "../../controller/backend.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { MetadataCodec } from "./metadata_codec.ts";
import type { Sandboxes } from "./sandboxes.ts";
import type { Sightings } from "./sightings.ts";

/** What {@link createBindIdentity} needs. */
export interface BindIdentityDeps {
  readonly api: Pick<Sandboxes, "patch">;
  readonly codec: MetadataCodec;
  /** Of the metadata. */
  readonly prefix: string;
  readonly sightings: Pick<Sightings, "find">;
  guard(): void;
}

/**
 * Makes `bindIdentity` of the backend: marks the sandbox for whoever gives identities (ADR 0031), once its
 * own metadata have been seen to state the assignment's SPIFFE ID. Nobody else may write to that sandbox
 * meanwhile. Rejects with a `BackendError`, what the server has met, or the signal's reason.
 */
export function createBindIdentity(deps: BindIdentityDeps): Backend["bindIdentity"] {
  const { api, codec, sightings } = deps;
  const { annotations } = metadataKeys(deps.prefix);
  return async ({ name, uid }, assignment, call) => {
    const action = `Bind the identity of executor "${name}"`;
    const sandbox = await sightings.find(name, call);
    if (sandbox === undefined || sandbox.id !== uid || sandbox.state === "Stopping") {
      throw new BackendError("conflict", `${action}: it is gone, or being deleted`);
    }
    const decoded = codec.annotationsOf(sandbox);
    const stated = decoded.kind === "decoded" ? decoded.annotations[annotations.spiffeId] : "";
    if (stated !== assignment.identity.spiffeId) {
      const why = decoded.kind === "decoded"
        ? `sandbox ${uid} has inconsistent SPIFFE identity metadata`
        : decoded.detail;
      throw new BackendError("invalid", `${action}: ${why}`, { retryable: false });
    }
    if (codec.isBound(sandbox)) return;
    deps.guard();
    if (await api.patch(uid, codec.bound, call)) return;
    throw new BackendError("conflict", `${action}: it is gone`);
  };
}
