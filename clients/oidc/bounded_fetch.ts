import type { CustomFetchOptions } from "openid-client";
import { readAtMost } from "../../lib/bytes.ts";

/** Discovery documents have some KB, keys and tokens less. */
const MAX_ANSWER_BYTES = 2 ** 20;

/** A provider's answer is longer than any that this protocol has; it was not read to its end. */
export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";
  constructor() {
    super(`longer than ${MAX_ANSWER_BYTES / 2 ** 20} MiB`);
  }
}

/**
 * `fetch` for `openid-client`, which reads whatever it is answered to its end. Rejects with
 * {@link AnswerTooLong}, or as `fetch` does.
 */
export async function boundedFetch(url: string, options: CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options as RequestInit);
  const bytes = await readAtMost(response.body ?? [], MAX_ANSWER_BYTES);
  if (bytes === undefined) throw new AnswerTooLong();
  const { status, statusText, headers } = response;
  // Some statuses must not have a body, not even an empty one.
  return new Response(bytes.length === 0 ? null : bytes, { status, statusText, headers });
}
