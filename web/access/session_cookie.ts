import type { Reach } from "../../controller/access/sign_outs.ts";
import type { Actor } from "../../controller/model/role.ts";
import { cookieHeader, readCookie } from "../cookies.ts";
import { type Session, SESSION_MS, type Sessions } from "./sessions.ts";

/** Name of the cookie; a host's own one is called `__Host-` and this. */
export const SESSION_COOKIE = "gdr-session";

/** The session of a browser. What begins, ends or clears one is text for `Set-Cookie`. */
export interface SessionCookie {
  /** Each sign-in has a session of its own; the one that the request is in ends. Never rejects. */
  begin(headers: Headers, actor: Actor): Promise<string>;
  /** Undefined without one, and for one that is forged, too old or ended. */
  read(headers: Headers): Session | undefined;
  /** Ends it before its time; resolves to how far that reaches. Never rejects. */
  end(headers: Headers): Promise<Reach>;
  /** Takes it out of the browser. */
  readonly cleared: string;
}

/** Makes {@link SessionCookie}; `secure` = over https alone. */
export function createSessionCookie(
  sessions: Sessions,
  { name, secure }: { readonly name: string; readonly secure: boolean },
): SessionCookie {
  const end = async (headers: Headers): Promise<Reach> => {
    const text = readCookie(headers, name);
    // Nobody's: there is nothing to tell anybody.
    return text === undefined ? "shared" : await sessions.end(text);
  };
  return {
    async begin(headers, actor) {
      await end(headers);
      const maxAgeSeconds = SESSION_MS / 1_000;
      return cookieHeader(name, sessions.begin(actor), { secure, maxAgeSeconds });
    },
    read(headers) {
      const text = readCookie(headers, name);
      return text === undefined ? undefined : sessions.read(text);
    },
    end,
    cleared: cookieHeader(name, "", { secure, maxAgeSeconds: 0 }),
  };
}
