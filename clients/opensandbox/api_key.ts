import type { Secret } from "../../lib/secret.ts";

/** The API key, which may be replaced while we run. */
export interface ApiKey {
  current(): Secret;
  /** Reads it again because `used` was refused; true when there is another one now. Never rejects. */
  renew(used: Secret): Promise<boolean>;
  /** The text without any of the keys. */
  hide(text: string): string;
}

/**
 * Makes an {@link ApiKey}. `read` reads it again where it was read at the start; absent when it was given
 * once and for all. Throws a `TypeError` for a key that no header can carry: the platform's own error
 * would show it.
 */
export function createApiKey(first: Secret, read?: () => Promise<Secret>): ApiKey {
  if (!isHeaderValue(first)) {
    throw new TypeError(
      "Speak with OpenSandbox: the API key is empty, or no line of printable ASCII: " +
        "set OPENSANDBOX_API_KEY",
    );
  }
  let current = first;
  const known = new Set([first.reveal()]);
  return {
    current: () => current,
    async renew(used) {
      if (used.reveal() === current.reveal()) {
        const next = await read?.().catch(() => undefined); // What is known goes on being used.
        if (next === undefined || !isHeaderValue(next)) return false;
        known.add(next.reveal());
        current = next;
      }
      return used.reveal() !== current.reveal();
    },
    hide(text) {
      let plain = text;
      for (const key of known) plain = plain.replaceAll(key, "[secret]");
      return plain;
    },
  };
}

function isHeaderValue(key: Secret): boolean {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(key.reveal());
}
