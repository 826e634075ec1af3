import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../lib/secret.ts";

/**
 * Proves that a leader's address was said by that leader. Standbys pass on to it what readers present,
 * cookies and tokens among it, and the Lease that names it can be written by more than the controllers.
 */
export interface AddressProof {
  /** By the first key, in lower-case hex; null without keys: the address is not believed then. */
  sign(said: SaidAddress): string | null;
  /** True when any of the keys made `proof` for exactly this. Takes the same time wherever it differs. */
  verify(said: SaidAddress, proof: string | undefined): boolean;
}

/** Who says where its pages are. */
export interface SaidAddress {
  /** Name of the process, unlike every other's: what one has said proves nothing for the next. */
  readonly holder: string;
  readonly address: string;
}

const LABEL = "gdr/leader-address/v1";
const KEY_BYTES = 32;

/** Makes an {@link AddressProof}: HMAC-SHA-256 by keys derived from `keys` (`CAPABILITY_KEY`) by HKDF. */
export function createAddressProof(keys: readonly Secret[]): AddressProof {
  const derived = keys.map((key) =>
    new Uint8Array(hkdfSync("sha256", key.reveal(), new Uint8Array(), LABEL, KEY_BYTES))
  );
  const mac = (key: Uint8Array, { holder, address }: SaidAddress) =>
    createHmac("sha256", key).update(JSON.stringify([holder, address])).digest();
  return {
    sign(said) {
      const [first] = derived;
      return first === undefined ? null : mac(first, said).toString("hex");
    },
    verify(said, proof) {
      if (proof === undefined || !/^[0-9a-f]{64}$/.test(proof)) return false;
      const given = Uint8Array.fromHex(proof);
      let valid = false;
      // Every key is tried, so that the time does not tell which one it was.
      for (const key of derived) valid = timingSafeEqual(mac(key, said), given) || valid;
      return valid;
    },
  };
}
