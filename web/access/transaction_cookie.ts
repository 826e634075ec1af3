import type { SignInTransaction } from "../../controller/access/identity_provider.ts";
import type { Clock } from "../../lib/clock.ts";
import { isObject } from "../../lib/json_object.ts";
import { cookieHeader, readCookie } from "../cookies.ts";
import { ownPath } from "./own_path.ts";
import type { Seal } from "./seal.ts";

/** People need no longer at their provider. */
export const TRANSACTION_MS = 600_000;

/** A sign-in that has begun at this browser, and where it leads. */
export interface Begun {
  readonly transaction: SignInTransaction;
  /** A path of ours. */
  readonly to: string;
}

/** What a browser keeps while its owner is at the provider. What begins or clears it is text for `Set-Cookie`. */
export interface TransactionCookie {
  readonly name: string;
  begin(begun: Begun): string;
  /** Undefined without one, and for one that is forged or older than ten minutes. */
  read(headers: Headers): Begun | undefined;
  /** Takes it out of the browser. */
  readonly cleared: string;
}

/** Makes {@link TransactionCookie}; `secure` = over https alone. */
export function createTransactionCookie(
  { seal, clock }: { readonly seal: Seal; readonly clock: Pick<Clock, "now"> },
  { name, secure }: { readonly name: string; readonly secure: boolean },
): TransactionCookie {
  return {
    name,
    begin({ transaction, to }) {
      const endsAt = clock.now() + TRANSACTION_MS;
      const sealed = seal.seal("sign-in", { ...transaction, to, endsAt });
      return cookieHeader(name, sealed, { secure, maxAgeSeconds: TRANSACTION_MS / 1_000 });
    },
    read(headers) {
      const sealed = readCookie(headers, name);
      return sealed === undefined ? undefined : begunIn(seal.open("sign-in", sealed), clock.now());
    },
    cleared: cookieHeader(name, "", { secure, maxAgeSeconds: 0 }),
  };
}

function begunIn(json: unknown, now: number): Begun | undefined {
  if (!isObject(json)) return undefined;
  const { state, nonce, verifier, to, endsAt } = json;
  if (typeof state !== "string" || typeof nonce !== "string" || typeof verifier !== "string") {
    return undefined;
  }
  if (typeof to !== "string" || typeof endsAt !== "number" || endsAt <= now) return undefined;
  return { to: ownPath(to), transaction: { state, nonce, verifier } };
}
