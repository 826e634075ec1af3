import type { Config } from "./config.ts";
import { readableFile } from "./parse_servers.ts";
import type { Reader } from "./reader.ts";
import { baseUrl, headerList, matching } from "./values.ts";

/** Where traces go, by OpenTelemetry's own variables; null = nowhere. */
export function tracesOf(reader: Reader, readFile: (path: string) => string): Config["traces"] {
  const endpoint = reader.optional("OTEL_EXPORTER_OTLP_ENDPOINT", {
    allowed: "an http or https URL without user and query; /v1/traces is added",
    parse: baseUrl(["http", "https"]),
  });
  const headers = reader.secret("OTEL_EXPORTER_OTLP_HEADERS", {
    allowed: "name=value, joined by commas; values may be percent-encoded",
    parse: (text) => headerList(text) === undefined ? undefined : text,
  });
  const caFile = readableFile(reader, "OTEL_EXPORTER_OTLP_CERTIFICATE", readFile);
  const serviceName = reader.value("OTEL_SERVICE_NAME", "gitea-dynamic-runner", {
    allowed: "up to 255 printable characters",
    parse: matching(/^[^\p{C}]{1,255}$/u),
  });
  return endpoint === null ? null : { endpoint, headers, caFile, serviceName };
}
