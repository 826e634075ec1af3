import assert from "node:assert/strict";
import plugin from "./layers.ts";
import { importProblem, PACKAGES, rowOf } from "./table.ts";

const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** Lints `source` as if it stood in `file`; returns `rule: message` of each complaint. */
function lint(file: string, source: string): string[] {
  return Deno.lint.runPlugin(plugin, ROOT + file, source)
    .map(({ id, message }) => `${id.slice("gdr/".length)}: ${message}`);
}

Deno.test("layers names both rows when a file imports from a lower row", () => {
  assert.deepEqual(lint("controller/worker.ts", `import { x } from "../clients/nats/queue.ts";`), [
    'layers: "controller/worker.ts" is in row 2 (loops and ports) and cannot import ' +
    '"clients/nats/queue.ts" of row 3 (adapters): declare a port in row 2 and join both in main.ts',
  ]);
});

Deno.test("layers sees every form of import", () => {
  for (
    const source of [
      `import type { X } from "../web/x.ts";`,
      `import "../web/x.ts";`,
      `export * from "../web/x.ts";`,
      `export { x } from "../web/x.ts";`,
      `await import("../web/x.ts");`,
    ]
  ) {
    const found = lint("facade/server.ts", source);
    assert.equal(found.length, 1, source);
    assert.match(found[0] ?? "", /row 3 \(adapters\).*row 4 \(pages\)/);
  }
});

Deno.test("layers lets a file import from its own row and the rows above", () => {
  const source = `
    import { a } from "../lib/clock.ts";
    import type { B } from "../controller/model/state.ts";
    import { c } from "../controller/queue.ts";
    import { d } from "../clients/connect/server.ts";
    import { e } from "./registry.ts";
    import { f } from "node:crypto";`;
  assert.deepEqual(lint("facade/server.ts", source), []);
});

Deno.test("layers keeps controller/ away from every adapter and page", () => {
  const places = ["clients", "backends", "facade", "executor", "embedded", "routes", "web"];
  for (const place of [...places, "components", "islands"]) {
    assert.match(importProblem("controller/a.ts", `../${place}/b.ts`) ?? "", /row 2/, place);
  }
});

Deno.test("layers keeps the pure rows pure", () => {
  assert.match(importProblem("controller/model/decide.ts", "../queue.ts") ?? "", /row 1.*row 2/);
  assert.match(importProblem("lib/clock.ts", "../controller/model/ids.ts") ?? "", /row 0.*row 1/);
  assert.equal(importProblem("controller/model/decide.ts", "../../lib/clock.ts"), undefined);
});

Deno.test("layers refuses one backend importing another", () => {
  assert.match(importProblem("backends/pod/a.ts", "../vm/b.ts") ?? "", /two backends never/);
  assert.equal(importProblem("backends/pod/a.ts", "./b.ts"), undefined);
  assert.equal(importProblem("backends/pod/a.ts", "../metadata.ts"), undefined);
});

Deno.test("layers lets a test beside its source use tests/, and its source not", () => {
  assert.equal(importProblem("lib/retry_test.ts", "../tests/support/property.ts"), undefined);
  assert.match(importProblem("lib/retry.ts", "../tests/support/property.ts") ?? "", /row 0.*row 5/);
  assert.match(importProblem("lib/retry_test.ts", "../facade/registry.ts") ?? "", /row 0.*row 3/);
});

Deno.test("layers keeps what the browser cannot run out of islands/", () => {
  assert.match(importProblem("islands/live.tsx", "node:fs") ?? "", /browser/);
  assert.match(importProblem("islands/live.tsx", "../clients/nats/queue.ts") ?? "", /browser/);
  assert.equal(importProblem("islands/live.tsx", "../controller/views.ts"), undefined);
});

Deno.test("layers complains about a place that the table does not know", () => {
  assert.match(importProblem("utils/a.ts", "../lib/clock.ts") ?? "", /has no row/);
  assert.match(importProblem("main.ts", "./utils/a.ts") ?? "", /has none/);
  assert.equal(importProblem("main.ts", "./deno.json"), undefined);
  assert.match(importProblem("controller/fetcher.ts", "../deno.json") ?? "", /row 2.*row 5/);
});

Deno.test("layers keeps each npm package in its folder", () => {
  const use = (file: string, name: string) => lint(file, `import { x } from "${name}";`);
  assert.deepEqual(use("controller/queue.ts", "nats"), [
    'layers: "controller/queue.ts" cannot import "nats": it is kept in clients/nats/',
  ]);
  assert.deepEqual(use("clients/nats/queue.ts", "nats"), []);
  assert.deepEqual(use("web/app.ts", "hono/secure-headers"), []);
  assert.match(use("routes/index.tsx", "hono/secure-headers")[0] ?? "", /kept in web\//);
  assert.match(use("facade/a.ts", "@connectrpc/connect/protocol")[0] ?? "", /clients\/connect\//);
  assert.match(use("lib/a.ts", "left-pad")[0] ?? "", /it has none/);
  assert.match(use("lib/a.ts", "constructor")[0] ?? "", /it has none/);
});

Deno.test("layers keeps development packages in tests/ and bench/", () => {
  assert.match(importProblem("lib/a_test.ts", "fast-check") ?? "", /tests\/ and bench\/ only/);
  assert.equal(importProblem("tests/support/property.ts", "fast-check"), undefined);
  assert.equal(importProblem("bench/handover.ts", "nats"), undefined);
});

Deno.test("layers asks for the import map in place of a registry's specifier", () => {
  for (const specifier of ["npm:hono@4", "jsr:@std/log", "https://example.org/x.ts"]) {
    assert.match(importProblem("tests/a.ts", specifier) ?? "", /import map/, specifier);
  }
});

Deno.test("PACKAGES has exactly the packages of the import map", () => {
  const text = Deno.readTextFileSync(`${ROOT}deno.json`);
  const { imports } = JSON.parse(text) as { imports: Record<string, string> };
  assert.deepEqual(Object.keys(PACKAGES).sort(), Object.keys(imports).sort());
});

Deno.test("rowOf() takes the longest place that fits", () => {
  assert.equal(rowOf("controller/model/ids.ts")?.number, 1);
  assert.equal(rowOf("controller/modeling.ts")?.number, 2);
  assert.equal(rowOf("main.ts")?.number, 5);
  assert.equal(rowOf("other.ts"), undefined);
});

Deno.test("default-export is for routes/, islands/ and this plugin", () => {
  for (const source of ["export default 1;", "const a = 1; export { a as default };"]) {
    assert.match(lint("lib/a.ts", source)[0] ?? "", /^default-export: /, source);
    assert.deepEqual(lint("routes/index.tsx", source), []);
    assert.deepEqual(lint("islands/live.tsx", source), []);
    assert.deepEqual(lint("tools/lint/layers.ts", source), []);
  }
});

Deno.test("enum is refused everywhere", () => {
  assert.match(lint("lib/a.ts", "enum A { B }")[0] ?? "", /^enum: /);
  assert.match(lint("tests/a.ts", "const enum A { B }")[0] ?? "", /^enum: /);
});

Deno.test("environment is read by the composition root, entry points, tools and tests", () => {
  for (
    const source of [`Deno.env.get("A");`, "const { env } = Deno; Deno.env;", "process.env.A;"]
  ) {
    const files = ["facade/server.ts", "controller/config/config.ts", "embedded/forge/server.ts"];
    for (const file of files) assert.match(lint(file, source)[0] ?? "", /^environment: /, file);
    const open = ["main.ts", "executor/main.ts", "embedded/forge/main.ts", "tools/register.ts"];
    for (const file of [...open, "wiring/nats.ts", "lib/a_test.ts", "tests/e2e/main.ts"]) {
      assert.deepEqual(lint(file, source), [], file);
    }
  }
});

Deno.test("non-null and double-cast are refused", () => {
  assert.match(lint("lib/a.ts", "f()!.x;")[0] ?? "", /^non-null: /);
  assert.match(lint("lib/a.ts", "x as unknown as string;")[0] ?? "", /^double-cast: /);
  assert.deepEqual(lint("lib/a.ts", "JSON.parse(x) as unknown; a !== b;"), []);
});

Deno.test("exported-function wants `function` and few arguments", () => {
  assert.match(lint("lib/a.ts", "export const f = () => 1;")[0] ?? "", /^exported-function: /);
  assert.match(lint("lib/a.ts", "export function f(a, b, c, d, e) {}")[0] ?? "", / has 5$/);
  const fine = "export function f(a, b, options) {} const g = () => 1; export const h = { g };";
  assert.deepEqual(lint("lib/a.ts", fine), []);
});

Deno.test("abort-listener is for the one place that looks before it listens", () => {
  for (
    const source of [`s.addEventListener("abort", f);`, `a?.s.addEventListener("abort", f, o);`]
  ) {
    assert.match(lint("tests/a.ts", source)[0] ?? "", /^abort-listener: .*onAbort/, source);
    assert.deepEqual(lint("lib/abortable.ts", source), []);
  }
  assert.deepEqual(
    lint("islands/a.ts", `s.addEventListener("open", f); s.addEventListener(e, f);`),
    [],
  );
});
