import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Secret } from "../lib/secret.ts";

/**
 * Proof that its bearer was launched for exactly one assignment: HMAC-SHA-256 over a
 * versioned context string and the assignment id, as URL-safe base64. Deterministic, so that a
 * restarted controller knows it again without storing it.
 */
export interface Capabilities {
  /** The capability of an assignment, by the first key. A secret: never log it. */
  issue(assignmentId: string): string;
  /** True if any current key made `presented` for that assignment. Takes the same time either way. */
  verify(assignmentId: string, presented: string): boolean;
}

/** Label of the signing subkey: the sealing of payloads derives another one from the same key. */
const KEY_LABEL = "gdr/capability/v1";
const CONTEXT = "gdr/capability/v1\n";
const KEY_BYTES = 32;

/**
 * Capabilities under `keys`: the first issues, all verify, so that a key can be rotated while jobs
 * run. Throws a `RangeError` without a key, or when one is shorter than 32 bytes.
 */
export function createCapabilities(keys: readonly Secret[]): Capabilities {
  const subkeys = keys.map(deriveKey);
  const [newest] = subkeys;
  if (newest === undefined) {
    throw new RangeError("Make capabilities: no key is given: set CAPABILITY_KEY");
  }
  return {
    issue: (assignmentId) => sign(newest, assignmentId).toString("base64url"),
    verify(assignmentId, presented) {
      // Both sides are hashed to one length first, so that neither length nor content shows in time.
      const given = digest(presented);
      let known = false;
      for (const key of subkeys) {
        const expected = digest(sign(key, assignmentId).toString("base64url"));
        known = timingSafeEqual(given, expected) || known;
      }
      return known;
    },
  };

  function digest(text: string): Uint8Array {
    return createHmac("sha256", newest ?? "").update(text).digest();
  }
}

function deriveKey(key: Secret): Uint8Array {
  const bytes = new TextEncoder().encode(key.reveal());
  if (bytes.length < KEY_BYTES) {
    throw new RangeError(
      `Make capabilities: a key has ${bytes.length} bytes, ${KEY_BYTES} are needed: set CAPABILITY_KEY`,
    );
  }
  return new Uint8Array(hkdfSync("sha256", bytes, new Uint8Array(), KEY_LABEL, KEY_BYTES));
}

function sign(key: Uint8Array, assignmentId: string) {
  return createHmac("sha256", key).update(CONTEXT + assignmentId).digest();
}
