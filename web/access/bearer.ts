import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import type { TokenRule } from "../../controller/config/config.ts";
import type { Actor } from "../../controller/model/role.ts";

/** Tokens are long random texts; nothing longer is hashed. */
const MAX_TOKEN_CHARS = 1_000;

/**
 * Finds whose a token is. Every rule is compared, in constant time, so that the time says nothing; what
 * is compared are hashes, so that a memory or configuration that leaks lets nobody in.
 */
export function createBearer(rules: readonly TokenRule[]): (token: string) => Actor | undefined {
  const known = rules.map(({ name, role, sha256 }) => ({
    actor: { name, role },
    hash: Buffer.from(sha256, "hex"),
  }));
  return (token) => {
    if (token === "" || token.length > MAX_TOKEN_CHARS) return undefined;
    const hash = createHash("sha256").update(token).digest();
    const found = known.filter((rule) => timingSafeEqual(rule.hash, hash));
    return found[0]?.actor;
  };
}

/** The token of `Authorization: Bearer`; undefined for another scheme (RFC 6750 2.1). */
export function bearerOf(header: string): string | undefined {
  return /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(header.trim())?.[1];
}
