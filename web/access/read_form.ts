import type { Clock } from "../../lib/clock.ts";
import { problem } from "../problem.ts";
import { mediaTypeOf, readBody } from "../read_body.ts";

const MAX_BODY = 8_192;
const FORM = "application/x-www-form-urlencoded";

/** The fields of a form of sign-in, or the answer to a body that is none. Rejects when the connection breaks. */
export async function readForm(
  request: Request,
  { clock, requestId }: { readonly clock: Clock; readonly requestId: string },
): Promise<URLSearchParams | Response> {
  const type = mediaTypeOf(request.headers);
  if (type !== FORM) {
    const detail = `Send the body as ${FORM}: it is "${type.slice(0, 100)}"`;
    return problem(415, { detail, requestId });
  }
  const read = await readBody(request, { maxBytes: MAX_BODY, clock, requestId });
  return read.kind === "refused"
    ? read.response
    : new URLSearchParams(new TextDecoder().decode(read.bytes));
}
