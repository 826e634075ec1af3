/** Fields of an RFC 9457 problem beside `status`, `title` and `requestId`. */
export interface ProblemOptions {
  /** What happened this time, and the way out. */
  readonly detail: string;
  readonly requestId: string;
  /** Further members, e.g. `allowed`. */
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not found",
  405: "Method not allowed",
  408: "Request timeout",
  409: "Conflict",
  412: "Precondition failed",
  413: "Content too large",
  415: "Unsupported media type",
  421: "Misdirected request",
  422: "Unprocessable content",
  429: "Too many requests",
  500: "Internal error",
  503: "Unavailable",
};

/** An `application/problem+json` response; `type` is `about:blank`, as RFC 9457 says for plain statuses. */
export function problem(status: number, options: ProblemOptions): Response {
  const { detail, requestId, extra = {}, headers = {} } = options;
  const body = {
    type: "about:blank",
    title: TITLES[status] ?? "Error",
    status,
    detail,
    requestId,
    ...extra,
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...headers,
    },
  });
}
