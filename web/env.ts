/** What one request carries through the middleware, in Hono's shape. */
export interface WebEnv {
  Variables: {
    /** In the log, in every problem, and in `X-Request-Id`. */
    requestId: string;
    /** Of the page's policy; null while nothing may load. */
    nonce: string | null;
  };
}
