import assert from "node:assert/strict";
import { makeCertificatePem } from "../../tests/support/certificate_pem.ts";
import { type Env, machine, ok } from "../../tests/support/config_env.ts";
import { type ConfigRow, testConfigRows } from "../../tests/support/config_rows.ts";
import { parseConfig } from "./parse.ts";

const SENT: Env = { OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector:4318" };

const TABLE: readonly ConfigRow[] = [
  {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    refused: ["collector:4318", "grpc://collector:4317", "http://user:pw@c:4318", "http://c/?a=b"],
    accepted: [[
      "https://collector.example.org:4318/otlp/",
      (c) => c.traces?.endpoint,
      "https://collector.example.org:4318/otlp/v1/traces",
    ]],
  },
  {
    name: "OTEL_EXPORTER_OTLP_CERTIFICATE",
    refused: ["/absent", "/text", "/damaged"],
    env: SENT,
    accepted: [["/file", (c) => c.traces?.caFile, "/file"]],
  },
  {
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    env: SENT,
    refused: ["token", "a b=c", "a=", "a=%zz", "a=b%0Ac", "a=b,,c=d"],
    accepted: [[
      "api-key=abc%3D%3D",
      (c) => c.traces?.headers.map((secret) => secret.reveal()),
      ["api-key=abc%3D%3D"],
    ]],
  },
  {
    name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    env: SENT,
    refused: ["collector:4318", "grpc://collector:4317", "http://user:pw@c:4318", "http://c/?a=b"],
    accepted: [["https://c:1/own/", (c) => c.traces?.endpoint, "https://c:1/own/"]],
  },
  {
    name: "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    refused: ["/absent", "/text", "/damaged"],
    env: {
      ...SENT,
      OTEL_EXPORTER_OTLP_CERTIFICATE: "/other",
    },
    accepted: [["/file", (c) => c.traces?.caFile, "/file"]],
  },
  {
    name: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    env: {
      ...SENT,
      OTEL_EXPORTER_OTLP_HEADERS: "a=1",
    },
    refused: ["token", "a b=c", "a=", "a=%zz"],
    accepted: [[
      "a=2",
      (c) => c.traces?.headers.map((secret) => secret.reveal()),
      ["a=1", "a=2"],
    ]],
  },
  {
    name: "OTEL_RESOURCE_ATTRIBUTES",
    env: SENT,
    refused: ["prod", "a=", "a=%zz", "a=b%0Ac", "a=b,,c=d", Array(65).fill("a=b").join()],
    accepted: [
      [
        "service.namespace=ci, deployment.environment.name=K%C3%B6ln",
        (c) => c.traces?.attributes,
        { "service.namespace": "ci", "deployment.environment.name": "Köln" },
      ],
      ["service.name=mine", (c) => c.traces?.serviceName, "mine"],
    ],
  },
  {
    name: "OTEL_SDK_DISABLED",
    env: SENT,
    refused: ["1", "yes"],
    accepted: [
      ["true", (c) => c.traces, null],
      ["TRUE", (c) => c.traces, null],
      ["false", (c) => c.traces !== null, true],
    ],
  },
  {
    name: "OTEL_SERVICE_NAME",
    refused: ["a\u0007b", "x".repeat(256)],
    env: SENT,
    accepted: [["ci runner", (c) => c.traces?.serviceName, "ci runner"]],
  },
];

const certificatePem = await makeCertificatePem();
const damaged = certificatePem.replace(/\n[A-Za-z0-9+/]{20}/, "\nAAAAAAAAAAAAAAAAAAAA");
testConfigRows(TABLE, {
  "/file": `# ours\n${certificatePem}${certificatePem}`,
  "/other": certificatePem,
  "/text": "content",
  "/damaged": certificatePem + damaged,
});

Deno.test("parseConfig() makes traces where only their own endpoint is set, and none without one", () => {
  const url = "http://tempo:4318/v1/traces";
  assert.equal(ok({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url }).traces?.endpoint, url);
  assert.equal(ok({ OTEL_EXPORTER_OTLP_HEADERS: "a=b" }).traces, null);
});

Deno.test("parseConfig() warns of OpenTelemetry's variables that count for nothing, not of the platform's", () => {
  const parsed = parseConfig({
    OTEL_TRACES_SAMPLER: "always_off",
    OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: "/key",
    OTEL_DENO: "true",
    OTEL_DENO_CONSOLE: "ignore",
  }, machine());
  assert.deepEqual(parsed.warnings, [
    "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY is not a setting of this program and is ignored",
    "OTEL_TRACES_SAMPLER is not a setting of this program and is ignored",
  ]);
});

Deno.test("parseConfig() shows no header that goes to the receiver", () => {
  const { effective, traces } = ok({
    ...SENT,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20planted",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-key=planted",
  });
  assert.equal(traces?.headers.length, 2);
  assert.doesNotMatch(JSON.stringify(effective), /planted/);
});
