import { abortable } from "../lib/abortable.ts";
import { concatBytes } from "../lib/bytes.ts";
import type { Clock } from "../lib/clock.ts";
import { problem } from "./problem.ts";

/** Bodies here are small: who needs longer than this does not mean to end. */
const BODY_MS = 10_000;

/** What a body is, or the answer to one that is too large (413) or too slow (408). */
export type Body =
  | { readonly kind: "read"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: "refused"; readonly response: Response };

/**
 * Reads a request's body, at most `maxBytes` in 10 s, so that no sender can fill memory or keep a
 * request for ever. Rejects when the connection breaks.
 */
export async function readBody(
  request: Request,
  { maxBytes, clock, requestId }: {
    readonly maxBytes: number;
    readonly clock: Clock;
    readonly requestId: string;
  },
): Promise<Body> {
  if (request.body === null) return { kind: "read", bytes: new Uint8Array() };
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  using patience = clock.timeout(BODY_MS);
  try {
    while (true) {
      const { done, value } = await abortable(reader.read(), patience.signal);
      if (done) return { kind: "read", bytes: concatBytes(chunks) };
      size += value.length;
      if (size > maxBytes) {
        return refuse(413, `Send at most ${maxBytes} bytes`, requestId);
      }
      chunks.push(value);
    }
  } catch (error) {
    if (!patience.signal.aborted) throw error;
    return refuse(408, `Send the body within ${BODY_MS / 1_000} s`, requestId);
  } finally {
    // Not awaited: a sender that says nothing would not end that either.
    void reader.cancel().catch(() => {});
  }
}

function refuse(status: number, detail: string, requestId: string): Body {
  const headers = { connection: "close" };
  return { kind: "refused", response: problem(status, { detail, requestId, headers }) };
}

/** What `Content-Type` says, without its parameters and in lower case; "" when it says nothing. */
export function mediaTypeOf(headers: Headers): string {
  const [type = ""] = (headers.get("content-type") ?? "").split(";", 1);
  return type.trim().toLowerCase();
}
