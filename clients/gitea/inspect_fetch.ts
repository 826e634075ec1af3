import type { GiteaError } from "../../controller/gitea.ts";
import { readAtMost } from "../../lib/bytes.ts";
import { type Attempt, giteaError } from "./error.ts";

type Fetch = typeof globalThis.fetch;

/** More than any task has, and no more than memory has. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

/**
 * A `fetch` that lets only answers of a Connect server through, whole, and throws a {@link GiteaError}
 * for all others: a redirect, a login page, a proxy's error, an answer without end. Redirects are not
 * followed, since the request carries the runner's token.
 */
export function inspectFetch(fetch: Fetch, attempt: Attempt): Fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: "manual" });
    const error = judge(response, attempt);
    if (error !== undefined) {
      await response.body?.cancel();
      throw error;
    }
    const bytes = await readAtMost(response.body ?? [], MAX_ANSWER_BYTES);
    if (bytes === undefined) {
      const size = `${MAX_ANSWER_BYTES / 2 ** 20} MiB`;
      throw giteaError("not_gitea", attempt, `answered with more than ${size}`);
    }
    const { status, statusText, headers } = response;
    return new Response(bytes.length === 0 ? null : bytes, { status, statusText, headers });
  };
}

function judge(response: Response, attempt: Attempt): GiteaError | undefined {
  const { status, headers } = response;
  const type = (headers.get("content-type") ?? "").split(";", 1)[0]?.trim() ?? "";
  const location = headers.get("location");
  if (status >= 300 && status < 400 || response.type === "opaqueredirect") {
    const target = location === null ? "another address" : `"${location.slice(0, 200)}"`;
    return giteaError("not_gitea", attempt, `answered with a redirect to ${target}`);
  }
  if (status === 413) return giteaError("too_large", attempt, "answered 413, request too large");
  if (status === 404 || status === 405 || status === 415) {
    return giteaError("not_gitea", attempt, `answered ${status}, no RunnerService there`);
  }
  const connect = type === "application/proto" || type === "application/json";
  if (connect) return undefined;
  const what = `answered ${status} with ${type === "" ? "no content type" : `"${type}"`}`;
  return status >= 500 || status === 429
    ? giteaError("unavailable", attempt, what)
    : giteaError("not_gitea", attempt, what);
}
