import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { Secret } from "../../lib/secret.ts";

/** What a sealed text is for: one of the one kind is never taken for one of the other. */
export type SealKind = "session" | "sign-in";

/** Seals small values into cookies: who has them can neither read nor change nor make them. */
export interface Seal {
  /** Base64url text. */
  seal(kind: SealKind, value: unknown): string;
  /** Undefined for what none of our keys has sealed for this use. */
  open(kind: SealKind, text: string): unknown;
}

const NONCE = 12;
const TAG = 16;
/** Browsers keep 4 KB of a cookie. */
const MAX_COOKIE_CHARS = 4_000;

/**
 * Makes a {@link Seal} by AES-256-GCM. The first of `secrets` seals, all of them open: the same ones at
 * each replica. `bound` goes into the keys: what was sealed under another one cannot be opened.
 */
export function createSeal(secrets: readonly Secret[], bound: string): Seal {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync("sha256", secret.reveal(), "", `gdr admin cookie ${bound}`, 32))
  );
  const [first] = keys;
  if (first === undefined) throw new RangeError("Make a seal: give at least one secret");
  return {
    seal(kind, value) {
      const nonce = randomBytes(NONCE);
      const cipher = createCipheriv("aes-256-gcm", first, nonce);
      cipher.setAAD(Buffer.from(kind));
      const body = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString("base64url");
    },
    open(kind, text) {
      if (text.length > MAX_COOKIE_CHARS || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
      const bytes = Buffer.from(text, "base64url");
      if (bytes.length <= NONCE + TAG) return undefined;
      for (const key of keys) {
        try {
          const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE));
          decipher.setAAD(Buffer.from(kind));
          decipher.setAuthTag(bytes.subarray(NONCE, NONCE + TAG));
          const plain = Buffer.concat([
            decipher.update(bytes.subarray(NONCE + TAG)),
            decipher.final(),
          ]);
          return JSON.parse(plain.toString());
        } catch {
          // Not by this key.
        }
      }
      return undefined;
    },
  };
}
