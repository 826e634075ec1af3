import { createHmac, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../lib/secret.ts";
import type { ExecutorName } from "./ids.ts";
import { type ExecutorMetadata, metadataKeys } from "./metadata.ts";

const CONTEXT = "gdr/executor-signature/v1";

/** What a signature is over. */
export interface Signed {
  readonly name: ExecutorName;
  /** As built or as read back: keys that are not ours, the marker and the signature do not count. */
  readonly metadata: ExecutorMetadata;
  /** From the record: a new one for each executor made. */
  readonly nonce: string;
  /** `METADATA_PREFIX`. */
  readonly prefix: string;
}

/** Signature of an executor: HMAC-SHA-256 over name, metadata and nonce, in lower-case hex. */
export function signMetadata(key: Secret, signed: Signed): string {
  return mac(key, message(signed)).toString("hex");
}

/** True when any of `keys` made `signature`. Takes the same time wherever it differs. */
export function verifyMetadata(
  keys: readonly Secret[],
  signed: Signed & { readonly signature: string | null },
): boolean {
  if (signed.signature === null || !/^[0-9a-f]{64}$/.test(signed.signature)) return false;
  const stated = Uint8Array.fromHex(signed.signature);
  const text = message(signed);
  let valid = false;
  // Every key is tried, so that the time does not tell which one it was.
  for (const key of keys) valid = timingSafeEqual(mac(key, text), stated) || valid;
  return valid;
}

function mac(key: Secret, text: string) {
  return createHmac("sha256", key.reveal()).update(text).digest();
}

/** JSON arrays in a fixed order: no two different inputs make the same text. */
function message({ name, metadata, nonce, prefix }: Signed): string {
  const { labels, annotations } = metadataKeys(prefix);
  const { terminal: _later, ...fixedLabels } = labels;
  const { signature: _itself, ...fixedAnnotations } = annotations;
  const pick = (from: Readonly<Record<string, string>>, keys: readonly string[]) =>
    keys.toSorted().map((key) => [key, from[key] ?? null]);
  return JSON.stringify([
    CONTEXT,
    name,
    nonce,
    pick(metadata.labels, Object.values(fixedLabels)),
    pick(metadata.annotations, Object.values(fixedAnnotations)),
  ]);
}
