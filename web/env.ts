import type { Entry } from "./access/access.ts";

/** What one request carries through the middleware, in Hono's shape. */
export interface WebEnv {
  Bindings: {
    /** Address of the connection; "" where it is not known. */
    peer: string;
  };
  Variables: {
    /** Who asks. */
    entry: Entry;
    /** In the log, in every problem, and in `X-Request-Id`. */
    requestId: string;
    /** Of the page's policy; null while nothing may load. */
    nonce: string | null;
  };
}
