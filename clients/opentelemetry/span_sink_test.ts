import assert from "node:assert/strict";
import type { Span } from "../../controller/traces/span.ts";
import type { SpanId, TraceId } from "../../controller/traces/trace_context.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { receiveTraces } from "../../tests/support/trace_receiver.ts";
import { openSpanSink } from "./span_sink.ts";

const SPAN: Span = {
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736" as TraceId,
  spanId: "00f067aa0ba902b7" as SpanId,
  parentSpanId: "b7ad6b7169203331" as SpanId,
  name: "run",
  kind: "server",
  startedAt: 1_700_000_000_000.25,
  endedAt: 1_700_000_001_500.5,
  attributes: { text: "a", number: 1.5, whole: 2, yes: true, none: null },
  events: [{ at: 1_700_000_000_001, name: "received", attributes: { detail: null } }],
  error: "the job has failed",
};

function open(
  endpoint: string,
  { logger = silentLogger, clock = systemClock }: { logger?: Logger; clock?: Clock } = {},
) {
  return openSpanSink({
    endpoint: `${endpoint}/v1/traces`,
    headers: { "x-key": "value" },
    ca: null,
    resource: {
      "service.name": "runner",
      "service.version": "1.2.3",
      "service.instance.id": "pod-0",
    },
    version: "1.2.3",
    delayMs: 5,
  }, { clock, logger });
}

function listen(): { readonly logger: Logger; readonly said: Record<string, unknown>[] } {
  const said: Record<string, unknown>[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (msg, fields) => void said.push({ msg, ...fields }),
    child: () => logger,
  };
  return { logger, said };
}

Deno.test("record() sends the span as OTLP with its resource and the headers", async () => {
  await using receiver = receiveTraces();
  await using sink = open(receiver.url);
  sink.record(SPAN);
  const [span] = await eventually(() => receiver.spans.length > 0 && receiver.spans, {
    what: "the span",
  });
  assert.equal(span?.traceId, SPAN.traceId);
  assert.equal(span?.spanId, SPAN.spanId);
  assert.equal(span?.parentSpanId, SPAN.parentSpanId);
  assert.deepEqual([span?.name, span?.kind, span?.error], ["run", 2, "the job has failed"]);
  assert.deepEqual([span?.startedAt, span?.endedAt], [SPAN.startedAt, SPAN.endedAt]);
  assert.deepEqual(span?.attributes, { text: "a", number: 1.5, whole: 2, yes: true });
  assert.deepEqual(span?.events.map(({ name }) => name), ["received"]);
  assert.equal(span?.service["service.name"], "runner");
  assert.equal(span?.service["service.version"], "1.2.3");
  assert.equal(span?.service["service.instance.id"], "pod-0");
  assert.equal(receiver.headers().get("x-key"), "value");
});

Deno.test("dispose sends what is left", async () => {
  await using receiver = receiveTraces();
  {
    await using sink = open(receiver.url);
    for (let i = 0; i < 1_300; i++) sink.record({ ...SPAN, parentSpanId: null });
  }
  assert.equal(receiver.spans.length, 1_300);
  assert.ok(receiver.spans.every(({ parentSpanId }) => parentSpanId === ""));
});

Deno.test("record() says once, and again at the end, how many spans a receiver has refused, and why", async () => {
  await using receiver = receiveTraces();
  receiver.answer(400);
  const { logger, said } = listen();
  {
    await using sink = open(receiver.url, { logger });
    sink.record(SPAN);
    await eventually(() => said.length > 0, { what: "the warning" });
    sink.record(SPAN);
    sink.record(SPAN);
  }
  assert.deepEqual(said.map(({ dropped }) => dropped), [1, 3]);
  assert.equal(said[0]?.["msg"], "spans are not delivered");
  assert.equal(said[0]?.["endpoint"], `${receiver.url}/v1/traces`);
  assert.match(String(said[0]?.["error"]), /the receiver answered 400 Bad Request/);
  assert.doesNotMatch(JSON.stringify(said), /"value"/);
});

Deno.test("record() does nothing that only the environment says", async () => {
  const name = "OTEL_EXPORTER_OTLP_COMPRESSION";
  const before = Deno.env.get(name);
  Deno.env.set(name, "gzip");
  try {
    await using receiver = receiveTraces();
    await using sink = open(receiver.url);
    sink.record(SPAN);
    await eventually(() => receiver.spans.length > 0, { what: "the span", timeoutMs: 3_000 });
  } finally {
    if (before === undefined) Deno.env.delete(name);
    else Deno.env.set(name, before);
  }
});

Deno.test("record() tells of spans that a receiver rejects although it answers 200", async () => {
  await using receiver = receiveTraces();
  receiver.answerWith(`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"over\\nquota"}}`);
  const { logger, said } = listen();
  await using sink = open(receiver.url, { logger });
  sink.record(SPAN);
  const [first] = await eventually(() => said.length > 0 && said, { what: "the warning" });
  assert.equal(first?.["dropped"], 2);
  assert.match(String(first?.["error"]), /took a part: over quota$/);
});

Deno.test("record() says once that what answers 200 is no receiver", async () => {
  await using receiver = receiveTraces();
  receiver.answerWith("<html>welcome</html>");
  const { logger, said } = listen();
  {
    await using sink = open(receiver.url, { logger });
    sink.record(SPAN);
    await eventually(() => said.length > 0, { what: "the warning" });
    sink.record(SPAN);
  }
  assert.deepEqual(said.map(({ msg }) => msg), ["receiver of traces is doubtful"]);
  assert.equal(said[0]?.["endpoint"], `${receiver.url}/v1/traces`);
});

Deno.test("a receiver whose answer never ends is cut off, and its spans are counted", async () => {
  const stopped = new AbortController();
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen() {},
    signal: stopped.signal,
  }, async (request) => {
    await request.text();
    const drops = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => controller.enqueue(new Uint8Array(1)),
    });
    return new Response(drops, { status: 500 });
  });
  const { logger, said } = listen();
  const clock = createFakeClock();
  {
    await using sink = open(`http://127.0.0.1:${server.addr.port}`, { logger, clock });
    sink.record(SPAN);
    const [first] = await eventually(async () => {
      await clock.advance(12_000);
      return said.length > 0 && said;
    }, { what: "the warning", timeoutMs: 8_000 });
    assert.equal(first?.["dropped"], 1);
  }
  stopped.abort();
  await server.finished;
});

Deno.test("record() names the way out where what listens there is no HTTP server", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serve = async () => {
    using connection = await listener.accept();
    await connection.write(new TextEncoder().encode("SSH-2.0-server\r\n"));
    await connection.read(new Uint8Array(1));
  };
  const served = serve();
  const { logger, said } = listen();
  {
    await using sink = open(`http://127.0.0.1:${listener.addr.port}`, { logger });
    sink.record(SPAN);
    await eventually(() => said.length > 0, { what: "the warning" });
  }
  assert.match(String(said[0]?.["error"]), /: what answers there is no HTTP server/);
  await served;
  listener.close();
});

Deno.test("record() sends half a character as none, and what JSON holds of it is whole", async () => {
  await using receiver = receiveTraces();
  await using sink = open(receiver.url);
  sink.record({ ...SPAN, name: "a\ud800", error: "b\udc00", attributes: { text: "c\ud83d" } });
  const [span] = await eventually(() => receiver.spans.length > 0 && receiver.spans, {
    what: "the span",
  });
  assert.deepEqual([span?.name, span?.error, span?.attributes["text"]], [
    "a\ufffd",
    "b\ufffd",
    "c\ufffd",
  ]);
});

Deno.test("a receiver that hangs costs spans, counted, and holds up no stop for over two seconds", async () => {
  await using receiver = receiveTraces();
  const release = receiver.hold();
  const { logger, said } = listen();
  const clock = createFakeClock();
  const sink = open(receiver.url, { logger, clock });
  for (let i = 0; i < 20_001; i++) sink.record(SPAN);
  assert.match(String(said[0]?.["error"]), /too slow/);
  const closed = sink[Symbol.asyncDispose]();
  await clock.advance(2_000);
  await closed;
  release();
  await eventually(() => receiver.spans.length === 20_000, { what: "what was on its way" });
});
