import { X509Certificate } from "node:crypto";
import type { Config } from "./config.ts";
import { readableFile } from "./parse_servers.ts";
import type { Reader } from "./reader.ts";
import { attributeList, baseUrl, headerList, matching } from "./values.ts";

const url = baseUrl(["http", "https"]);
/** What is none the platform leaves out without a word, and then trusts nobody. */
const CERTIFICATES = {
  allowed: "a readable file with certificates in PEM",
  good(text: string) {
    const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
    // Throws at what is none.
    return blocks.map((block) => new X509Certificate(block)).length > 0;
  },
};
const HEADERS = {
  allowed: "name=value, joined by commas; values may be percent-encoded",
  parse: (text: string) => headerList(text) === undefined ? undefined : text,
};

/**
 * Where traces go, by OpenTelemetry's own variables; null = nowhere. As everywhere, what is said of traces
 * alone counts before what is said of all signals.
 */
export function tracesOf(reader: Reader, readFile: (path: string) => string): Config["traces"] {
  const disabled = reader.value("OTEL_SDK_DISABLED", "false", {
    allowed: "true or false",
    parse: (text) => /^(true|false)$/i.test(text) ? text.toLowerCase() : undefined,
  }) === "true";
  const base = reader.optional("OTEL_EXPORTER_OTLP_ENDPOINT", {
    allowed: "an http or https URL without user and query; /v1/traces is added",
    parse: url,
  });
  const own = reader.optional("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", {
    allowed: "an http or https URL without user and query, with its whole path",
    parse: (text) => url(text) === undefined ? undefined : text,
  });
  const headers = reader.secret("OTEL_EXPORTER_OTLP_HEADERS", HEADERS);
  const ownHeaders = reader.secret("OTEL_EXPORTER_OTLP_TRACES_HEADERS", HEADERS);
  const ca = readableFile(reader, "OTEL_EXPORTER_OTLP_CERTIFICATE", readFile, CERTIFICATES);
  const ownCa = readableFile(
    reader,
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    readFile,
    CERTIFICATES,
  );
  const attributes = reader.optional("OTEL_RESOURCE_ATTRIBUTES", {
    allowed: "name=value, joined by commas, up to 64; values may be percent-encoded",
    parse: attributeList,
  }) ?? {};
  const serviceName = reader.optional("OTEL_SERVICE_NAME", {
    allowed: "up to 255 printable characters",
    parse: matching(/^[^\p{C}]{1,255}$/u),
  }) ?? attributes["service.name"] ?? "gitea-dynamic-runner";
  const endpoint = own ?? (base === null ? null : `${base}/v1/traces`);
  if (endpoint === null || disabled) return null;
  return {
    endpoint,
    headers: [headers, ownHeaders].filter((secret) => secret !== null),
    caFile: ownCa ?? ca,
    serviceName,
    attributes,
  };
}
