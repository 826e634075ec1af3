import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { diag, DiagLogLevel } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { oneLine } from "../../lib/one_line.ts";

/** Where spans go. */
export interface Receiver {
  /** Whole URL. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM; null = the system's authorities. */
  readonly ca: string | null;
}

/** What becomes of spans that were given to an {@link createOtlpExporter}. */
export interface Outcomes {
  /** They are out of our hands: delivered, or not, with the reason. */
  done(count: number, error: Error | null): void;
  /** The receiver has taken a batch, but not these of it. */
  rejected(count: number, error: Error): void;
  /** The receiver answers what no OTLP receiver answers; told once. */
  strange(detail: string): void;
}

/** Whatever a receiver does, a batch is over after this time. */
const SEND_MS = 10_000;
/** The exporter's own limit is for a silent receiver; one that goes on talking is cut off. */
const CUT_MS = SEND_MS + 2_000;

/**
 * OpenTelemetry's exporter over HTTP with JSON, tried again for up to ten seconds, whose outcomes are all
 * told. Every batch is over within some 12 s. Takes the library's own log, of which there is one per process.
 */
export function createOtlpExporter(
  { endpoint, headers, ca }: Receiver,
  deps: {
    readonly clock: Clock;
    /** Batches on their way at once. */
    readonly concurrency: number;
    readonly outcomes: Outcomes;
  },
): SpanExporter {
  const { clock, outcomes } = deps;
  listenToLibrary(outcomes);
  const agent = endpoint.startsWith("https:")
    ? new HttpsAgent({ keepAlive: true, ...ca === null ? {} : { ca } })
    : new HttpAgent({ keepAlive: true });
  const inner = new OTLPTraceExporter({
    // Everything is said here, or the library would read it from the environment by itself.
    url: endpoint,
    headers: { ...headers },
    timeoutMillis: SEND_MS,
    concurrencyLimit: deps.concurrency,
    httpAgentOptions: () => agent,
    compression: PLAIN,
  });
  return {
    export(spans, done) {
      const limit = every(CUT_MS, clock, () => agent.destroy());
      inner.export(spans, ({ code, error }) => {
        limit[Symbol.dispose]();
        outcomes.done(spans.length, code === SUCCESS ? null : plain(error));
        done({ code: SUCCESS });
      });
    },
    shutdown: () => inner.shutdown(),
    forceFlush: () => inner.forceFlush?.() ?? Promise.resolve(),
  };
}

/** Calls `act` again and again until it is disposed of. */
function every(ms: number, clock: Clock, act: () => void): Disposable {
  let limit = clock.timeout(ms);
  const arm = () => onAbort(limit.signal, again);
  const again = () => {
    act();
    limit = clock.timeout(ms);
    arm();
  };
  arm();
  return { [Symbol.dispose]: () => limit[Symbol.dispose]() };
}

type Compression = NonNullable<
  NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>["compression"]
>;
/** `CompressionAlgorithm.NONE`, an enum of a package that is not ours to name. */
const PLAIN = "none" as Compression;

/** `ExportResultCode.SUCCESS` of `@opentelemetry/core`. */
const SUCCESS = 0;

/** By the platform's codes. */
const WAYS_OUT: readonly (readonly [RegExp, string])[] = [
  [/CERT|VERIFY/, "OTEL_EXPORTER_OTLP_CERTIFICATE must name the authorities of the receiver"],
  [/^HPE_/, "what answers there is no HTTP server, or speaks https"],
];

/** The library's error with the status that it knows; the answer's body, which it holds, is left out. */
function plain(error: Error | undefined): Error {
  if (error === undefined) return new Error("not delivered");
  const code = "code" in error ? error.code : null;
  if (typeof code === "number") {
    return new Error(`the receiver answered ${code} ${oneLine(error.message, 100)}`.trim());
  }
  const wayOut = typeof code === "string"
    ? WAYS_OUT.find(([codes]) => codes.test(code))
    : undefined;
  if (wayOut !== undefined) return new Error(`${oneLine(error.message)}: ${wayOut[1]}`);
  return /retryable status/.test(error.message)
    ? new Error("the receiver has no room now: it answered 429, 502, 503 or 504")
    : error;
}

/** What the receiver says beside its status is found nowhere but in the library's log. */
function listenToLibrary({ rejected, strange }: Outcomes): void {
  let saidStrange = false;
  const ignored = () => {};
  const warn = (...words: readonly unknown[]) => {
    const text = words.filter((word) => typeof word === "string").join(" ");
    const partial = /Partial Success response: (\{.*\})$/s.exec(text)?.[1];
    if (partial !== undefined) {
      const { rejectedSpans, errorMessage } = objectOrEmpty(JSON.parse(partial));
      const why = typeof errorMessage === "string" ? oneLine(errorMessage) : "";
      return rejected(Number(rejectedSpans) || 0, new Error(`the receiver took a part: ${why}`));
    }
    if (saidStrange || !text.includes("Failed to parse trace export response")) return;
    saidStrange = true;
    strange("its answer is none of OTLP in JSON: is the address right?");
  };
  diag.setLogger({ error: ignored, warn, info: ignored, debug: ignored, verbose: ignored }, {
    logLevel: DiagLogLevel.WARN,
    suppressOverrideMessage: true,
  });
}
