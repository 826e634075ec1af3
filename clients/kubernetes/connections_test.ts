import assert from "node:assert/strict";
import { Secret } from "../../lib/secret.ts";
import { createConnections } from "./connections.ts";
import type { Material } from "./material.ts";

const MATERIAL: Material = {
  server: "https://h:6443",
  ca: "first",
  certificate: null,
  token: new Secret("1"),
  proxy: null,
};

/** Connections that note what was opened and closed, by CA. */
function setup() {
  const opened: string[] = [];
  const closed: string[] = [];
  const connections = createConnections((material) => {
    const name = `${material.ca} ${opened.length}`;
    opened.push(name);
    const close = () => void closed.push(name);
    return { close, [Symbol.dispose]: close };
  });
  return { opened, closed, connections };
}

Deno.test("createConnections() shares connections for as long as only the token differs", () => {
  const { opened, closed, connections } = setup();
  using one = connections.use(MATERIAL);
  using two = connections.use({ ...MATERIAL, token: new Secret("2") });
  assert.equal(one.http, two.http);
  assert.deepEqual([opened, closed], [["first 0"], []]);
});

Deno.test("createConnections() closes those of the old trust when their last call has ended, once", () => {
  const { opened, closed, connections } = setup();
  const calls = [connections.use(MATERIAL), connections.use(MATERIAL)];
  const renewed = connections.use({ ...MATERIAL, ca: "second" });
  assert.deepEqual(opened, ["first 0", "second 1"]);
  calls[0]?.[Symbol.dispose]();
  calls[0]?.[Symbol.dispose]();
  assert.deepEqual(closed, []);
  calls[1]?.[Symbol.dispose]();
  assert.deepEqual(closed, ["first 0"]);
  renewed[Symbol.dispose]();
  assert.deepEqual(closed, ["first 0"]);
  connections[Symbol.dispose]();
  connections[Symbol.dispose]();
  assert.deepEqual(closed, ["first 0", "second 1"]);
});

Deno.test("retire() gives up what was silent, and nothing that has come since", () => {
  const { opened, closed, connections } = setup();
  const silent = connections.use(MATERIAL);
  const beside = connections.use(MATERIAL);
  connections.retire(silent);
  const fresh = connections.use(MATERIAL);
  assert.deepEqual(opened, ["first 0", "first 1"]);
  // The other one of the same connections was silent, too, and says so later.
  connections.retire(beside);
  assert.equal(connections.use(MATERIAL).http, fresh.http);
  silent[Symbol.dispose]();
  beside[Symbol.dispose]();
  assert.deepEqual(closed, ["first 0"]);
});

Deno.test("createConnections() closes at disposal only what nobody uses", () => {
  const { closed, connections } = setup();
  const call = connections.use(MATERIAL);
  connections[Symbol.dispose]();
  assert.deepEqual(closed, []);
  call[Symbol.dispose]();
  assert.deepEqual(closed, ["first 0"]);
});
