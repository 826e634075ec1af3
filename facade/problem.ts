import type { NodeRequest, NodeResponse } from "../clients/connect/node_handler.ts";
import { readAtMost } from "../lib/bytes.ts";
import { isObject } from "../lib/json_object.ts";

/** What a caller is told has gone wrong (RFC 9457). */
export interface Problem {
  readonly status: 400 | 403 | 404 | 413 | 415 | 429 | 503;
  readonly title: string;
}

/** Ends a call with a {@link Problem}. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  /** What the caller is told. */
  readonly problem: Problem;

  /** `title` is for the caller. */
  constructor(status: Problem["status"], title: string) {
    super(title);
    this.problem = { status, title };
  }
}

const MAX_BODY = 16 * 1024;

/** A body that is a JSON object; an empty one reads as `{}`. Throws {@link ProblemError}. */
export async function readJsonBody(
  request: NodeRequest,
): Promise<Readonly<Record<string, unknown>>> {
  if (request.headers["content-encoding"] !== undefined) {
    throw new ProblemError(415, "the body must not be compressed");
  }
  const body = await readAtMost(request, MAX_BODY).catch(() => {
    // Its sender has gone, or was killed: no trouble of ours.
    throw new ProblemError(400, "the body broke off");
  });
  if (body === undefined) throw new ProblemError(413, `the body is over ${MAX_BODY} bytes`);
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body) || "{}");
    if (isObject(value)) return value;
  } catch {
    // Told below.
  }
  throw new ProblemError(400, "the body must be a JSON object");
}

/** Answers with problem+json. */
export function sendProblem(response: NodeResponse, problem: Problem): void {
  response.statusCode = problem.status;
  response.setHeader("content-type", "application/problem+json");
  response.end(JSON.stringify({ type: "about:blank", ...problem }));
}
