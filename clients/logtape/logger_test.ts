import assert from "node:assert/strict";
import { Secret } from "../../lib/secret.ts";
import { fc } from "../../tests/support/property.ts";
import { createLogger, type LoggerOptions } from "./logger.ts";

const AT = Date.UTC(2026, 0, 2, 12, 4, 5, 678);

function setup(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    level: "debug",
    format: "json",
    colours: false,
    now: () => AT,
    write: (line) => lines.push(line),
    ...options,
  });
  const record = (): Record<string, unknown> => {
    assert.equal(lines.length, 1, lines.join(""));
    return JSON.parse(lines[0] ?? "");
  };
  return { logger, lines, record };
}

Deno.test("createLogger() writes time, level and msg first, then the fields in their order", () => {
  const { logger, lines } = setup();
  logger.child({ component: "worker" }).info("assignment transition", {
    event: "received",
    retry_delay: 0,
    phase: "",
  });
  assert.deepEqual(lines, [
    `{"time":"2026-01-02T12:04:05.678Z","level":"INFO","msg":"assignment transition",` +
    `"component":"worker","event":"received","retry_delay":0,"phase":""}\n`,
  ]);
});

Deno.test("createLogger() names the levels and leaves out what is below its own", () => {
  const { logger, lines } = setup({ level: "warn" });
  logger.debug("a");
  logger.info("b");
  logger.warn("c");
  logger.error("d");
  assert.deepEqual(lines.map((line) => JSON.parse(line).level), ["WARN", "ERROR"]);
});

Deno.test("createLogger() makes loggers that do not disturb each other", () => {
  const one = setup();
  const two = setup({ level: "error" });
  one.logger.info("to one");
  two.logger.info("dropped");
  two.logger.error("to two");
  assert.equal(one.record()["msg"], "to one");
  assert.equal(two.record()["msg"], "to two");
});

Deno.test("createLogger() keeps the head when a field has its name, and takes braces literally", () => {
  const { logger, record } = setup();
  logger.info("literal {event} {{x}}", {
    msg: "forged",
    time: "never",
    level: "FATAL",
    event: "e",
  });
  const { msg, level, time, msg_ } = record();
  assert.deepEqual([msg, level, time, msg_], [
    "literal {event} {{x}}",
    "INFO",
    "2026-01-02T12:04:05.678Z",
    "forged",
  ]);
});

Deno.test("createLogger() redacts by type, by key and by pattern", () => {
  const planted = "planted-secret-value";
  const hex = "0123456789abcdef0123456789abcdef01234567";
  const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r";
  const pem = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----";
  const { logger, lines, record } = setup();
  logger.error("assignment processing error", {
    wrapped: new Secret(planted),
    bytes: new TextEncoder().encode(planted),
    token: planted,
    CI_RUNNER_CAPABILITY: planted,
    headers: { Authorization: `Bearer ${planted}`, "x-runner-token": planted },
    environment: { A: planted },
    list: [`Bearer ${planted}`, `token=${planted}`, `https://u:${planted}@host/x`],
    error: new Error(`refused ${hex}`, { cause: new Error(`with ${jwt} and ${pem}`) }),
    pem: pem.slice(0, 60),
    tokensVersion: 7,
  });
  const line = lines[0] ?? "";
  for (const secret of [planted, hex, jwt, "MIGHAgEA"]) assert.ok(!line.includes(secret), line);
  const { wrapped, bytes, error, tokensVersion } = record();
  assert.equal(wrapped, "[secret]");
  assert.equal(bytes, "[20 bytes]");
  assert.equal(error, "refused [redacted]: with [redacted] and [redacted]");
  assert.equal(tokensVersion, 7);
});

Deno.test("createLogger() writes an error with its causes, each once", () => {
  const { logger, record } = setup();
  const root = new Error("connection refused");
  const middle = new Error("publish: connection refused", { cause: root });
  logger.error("scheduler error", { error: new Error("store task 7", { cause: middle }) });
  assert.equal(record()["error"], "store task 7: publish: connection refused");
});

Deno.test("createLogger() takes odd values: cycles, getters that throw, bigints, depth, long texts", () => {
  const { logger, record } = setup();
  const cycle: Record<string, unknown> = { big: 7n, nan: NaN, none: undefined };
  cycle["self"] = cycle;
  const deep = JSON.parse(`${'{"a":'.repeat(20)}1${"}".repeat(20)}`);
  const trap = Object.defineProperty({}, "x", {
    enumerable: true,
    get() {
      throw new Error("no");
    },
  });
  logger.info("odd", { cycle, deep, trap, long: "x".repeat(100_000), many: Array(1000).fill(1) });
  const { cycle: written, trap: trapped, long, many } = record();
  assert.deepEqual(written, { big: "7", nan: "NaN", self: "[circular]" });
  assert.deepEqual(trapped, { x: "[unreadable]" });
  assert.equal(String(long).length, 8195);
  assert.ok(Array.isArray(many) && many.length === 100);
});

Deno.test("createLogger() makes exactly one line of whatever text comes, in both formats", () => {
  const json = setup();
  const pretty = setup({ format: "pretty" });
  const nasty = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      'x"}\n{"time":"2026-01-01T00:00:00Z","level":"ERROR","msg":"forged"}',
      "\u001b[2J\u001b]0;title\u0007",
      "\0\u2028\u2029\u0085\u202e\u009b31m",
    ),
  );
  fc.assert(fc.property(nasty, nasty, nasty, (message, key, value) => {
    for (const { logger, lines } of [json, pretty]) {
      lines.length = 0;
      logger.info(message, { [key]: value, error: new Error(value) });
      assert.equal(lines.length, 1);
      const line = lines[0] ?? "";
      assert.ok(line.endsWith("\n"));
      assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
    }
    assert.equal(JSON.parse(json.lines[0] ?? "").level, "INFO");
  }));
});

Deno.test("createLogger() is readable for people when the format is pretty", () => {
  const { logger, lines } = setup({ format: "pretty" });
  logger.info("listening", {});
  logger.warn("assignment transition", {
    event: "received",
    assignment: "gitea-task-7",
    executor: null,
    detail: "two words",
    counts: { a: 1 },
  });
  assert.deepEqual(lines, [
    "12:04:05.678 INFO  listening\n",
    `12:04:05.678 WARN  assignment transition        event=received assignment=gitea-task-7 detail="two words" counts={"a":1}\n`,
  ]);
});

Deno.test("createLogger() loses no line when the process exits at once", async () => {
  const module = new URL("./logger.ts", import.meta.url).href;
  const script = `
    const { createLogger } = await import(${JSON.stringify(module)});
    const logger = createLogger({ level: "info", format: "json" });
    for (let n = 0; n < 2000; n++) logger.info("line", { n, filler: "x".repeat(200) });
    Deno.exit(0);
  `;
  const output = await new Deno.Command(Deno.execPath(), { args: ["eval", script] }).output();
  const text = new TextDecoder().decode(output.stderr);
  const lines = text.trim().split("\n").filter((line) => line.startsWith("{"));
  assert.equal(lines.length, 2000, text.slice(0, 500));
});
