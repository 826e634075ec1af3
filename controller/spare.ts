import type { Executor } from "./backend.ts";
import type { Entry } from "./entry.ts";
import type { Ownership } from "./worker.ts";

/**
 * True for a second executor of one assignment, made by a create whose answer was lost, where the backend
 * makes one for each request: it is signed as the one that the record names, is another one, and never
 * got an identity, so that it has begun nothing and may be deleted (docs/adr/0035). Never for one whose
 * backend cannot tell about its identity.
 */
export async function isSpare(
  entry: Pick<Entry, "record" | "remains">,
  { name, uid, metadata, identityBound }: Executor,
  ownership: Pick<Ownership, "verify">,
): Promise<boolean> {
  const proof = entry.record?.value ?? entry.remains;
  if (identityBound !== false || proof === null) return false;
  if (proof.uid === null || proof.uid === uid) return false;
  return await ownership.verify(name, metadata, proof.nonce);
}
