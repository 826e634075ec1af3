/** Names of the gRPC status codes, by number (gRPC specification). */
const CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;
/** One gRPC status code by name. */
export type GrpcCode = (typeof CODES)[number];

/** A gRPC call failed. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  /** The status that the server, or the transport, gave. */
  readonly code: GrpcCode;

  /** `message` is the status' own text. */
  constructor(code: GrpcCode, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
  }

  /** Any error of a gRPC call; what carries no status is UNKNOWN. */
  static from(error: unknown): GrpcError {
    if (error instanceof GrpcError) return error;
    const status = readStatus(error);
    const text = status.details ?? (error instanceof Error ? error.message : String(error));
    return new GrpcError(grpcCode(status.code), steady(text), { cause: error });
  }
}

/** Without the moment that grpc-js puts into it, and what it leaves empty: the same fault reads the same. */
function steady(text: string): string {
  return text
    .replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/, "")
    .replace(/\.? *Resolution note: *$/, "");
}

/** The name of a status code; numbers that gRPC does not know are UNKNOWN. */
export function grpcCode(number: unknown): GrpcCode {
  return typeof number === "number" ? CODES[number] ?? "UNKNOWN" : "UNKNOWN";
}

/** The number of a status code. */
export function grpcNumber(code: GrpcCode): number {
  return CODES.indexOf(code);
}

function readStatus(error: unknown): { code?: unknown; details?: string } {
  if (typeof error !== "object" || error === null) return {};
  const code = "code" in error ? error.code : undefined;
  const details = "details" in error && typeof error.details === "string" && error.details !== ""
    ? error.details
    : undefined;
  return details === undefined ? { code } : { code, details };
}
