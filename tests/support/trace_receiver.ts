/** A span as an OTLP receiver reads it. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly name: string;
  /** As OTLP numbers it: 1 internal, 2 server, 4 producer, 5 consumer. */
  readonly kind: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string }[];
  /** Null without an error. */
  readonly error: string | null;
  /** Of its resource. */
  readonly service: Readonly<Record<string, unknown>>;
}

/** An OTLP receiver on loopback. */
export interface TraceReceiver extends AsyncDisposable {
  /** What `OTEL_EXPORTER_OTLP_ENDPOINT` is set to. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Headers of the last request. */
  headers(): Headers;
  /** Answers with this status from now on. */
  answer(status: number): void;
  /** Answers 200 with this body from now on. */
  answerWith(body: string): void;
  /** Answers nothing until what it returns is called. */
  hold(): () => void;
}

/** Starts a {@link TraceReceiver}: OTLP over HTTP with JSON, on `/v1/traces` alone. */
export function receiveTraces(): TraceReceiver {
  const spans: ReceivedSpan[] = [];
  let status = 200;
  let answer = "{}";
  let held = Promise.resolve();
  const holds = new Set<() => void>();
  let last = new Headers();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    last = request.headers;
    const body: unknown = await request.json();
    await held;
    if (new URL(request.url).pathname !== "/v1/traces") return new Response(null, { status: 404 });
    if (status !== 200) return new Response(null, { status });
    spans.push(...read(body as Exported));
    return new Response(answer, { headers: { "content-type": "application/json" } });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    spans,
    headers: () => last,
    answer(value) {
      status = value;
    },
    answerWith(body) {
      answer = body;
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      holds.add(resolve);
      return resolve;
    },
    async [Symbol.asyncDispose]() {
      // A test that has failed while it held answers must not wait for them.
      for (const release of holds) release();
      await server.shutdown();
    },
  };
}

type Value = Readonly<Record<string, unknown>>;
type KeyValues = readonly { readonly key: string; readonly value: Value }[];

/** `ExportTraceServiceRequest` in OTLP's JSON. */
interface Exported {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: KeyValues };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly name: string;
        readonly kind: number;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly attributes: KeyValues;
        readonly events: readonly { readonly name: string }[];
        readonly status: { readonly code?: number; readonly message?: string };
      }[];
    }[];
  }[];
}

function read({ resourceSpans }: Exported): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        parentSpanId: span.parentSpanId ?? "",
        startedAt: Number(BigInt(span.startTimeUnixNano) / 1_000n) / 1_000,
        endedAt: Number(BigInt(span.endTimeUnixNano) / 1_000n) / 1_000,
        attributes: plain(span.attributes),
        error: span.status.code === 2 ? span.status.message ?? "" : null,
        service: plain(resource.attributes),
      }))
    )
  );
}

function plain(attributes: KeyValues): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
