import type { Context } from "hono";
import type { WebEnv } from "./env.ts";

/** Completes a response of this request: its policy, and the id that log and problems name. */
export function finish(c: Context<WebEnv>): void {
  secure(c.res.headers, c.get("nonce"));
  c.res.headers.set("x-request-id", c.get("requestId"));
}

/**
 * Sets the headers that every response carries. `nonce` goes into the policy of a page; without one
 * nothing may load at all.
 */
function secure(headers: Headers, nonce: string | null): void {
  headers.set("content-security-policy", nonce === null ? CLOSED : policyOf(nonce));
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "no-referrer");
  headers.set("cross-origin-opener-policy", "same-origin");
  headers.set("cross-origin-resource-policy", "same-origin");
  headers.set("x-frame-options", "DENY");
  headers.set("permissions-policy", "camera=(), geolocation=(), microphone=()");
}

const CLOSED = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** No inline script or style, nothing from elsewhere, no markup from strings (trusted types). */
function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

/** 128 random bits, fresh for every page. */
export function createNonce(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toBase64();
}
