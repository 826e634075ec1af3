/** One call of the runner, with its body read. */
export interface RunnerCall {
  /** `/package.Service/Method`. */
  readonly method: string;
  header(name: string): string | undefined;
  readonly body: Uint8Array;
}

/** The answer to it. */
export interface RunnerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A message in protobuf. */
export function protoAnswer(
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): RunnerAnswer {
  return { status: 200, headers: { ...headers, "content-type": "application/proto" }, body };
}

/** An error as the Connect protocol writes it. */
export function errorAnswer(
  status: number,
  { code, message }: { readonly code: string; readonly message: string },
): RunnerAnswer {
  return {
    status,
    headers: { "content-type": "application/json" },
    body: new TextEncoder().encode(JSON.stringify({ code, message })),
  };
}

/** 403 with that message. */
export function denied(message: string): RunnerAnswer {
  return errorAnswer(403, { code: "permission_denied", message });
}

/** 503 with that message: the runner tries again. */
export function unavailable(message: string): RunnerAnswer {
  return errorAnswer(503, { code: "unavailable", message });
}
