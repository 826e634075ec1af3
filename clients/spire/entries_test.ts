import assert from "node:assert/strict";
import { create } from "../../proto/runtime.ts";
import { type Entry, EntrySchema } from "../../proto/gen/spire/api/types/entry_pb.ts";
import { BackendError } from "../../controller/backend.ts";
import {
  assignmentIdOf,
  executorName,
  instanceOf,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { createSpireEntries } from "./entries.ts";
import { type EntryApi, idOf } from "./entry_api.ts";

const PARENT = "spiffe://test.example/node/one";
const ID = "spiffe://test.example/ci/acme/app/build";
const call = { signal: new AbortController().signal };

async function nameOf(digits: string) {
  const id = parseTaskId(digits);
  assert(id !== undefined);
  return executorName(await instanceOf("uuid", "ns"), assignmentIdOf(id));
}

/** A SPIRE server's entries in memory. */
function createFakeApi(): EntryApi & { readonly entries: Entry[] } {
  const entries: Entry[] = [];
  const key = (e: Entry) => JSON.stringify([e.spiffeId?.path, e.parentId?.path, e.selectors]);
  let next = 1;
  return {
    entries,
    list: ({ hint }) =>
      Promise.resolve(entries.filter((e) => hint === undefined || e.hint === hint)),
    create(init) {
      const entry = create(EntrySchema, { ...init, id: String(next++) });
      const same = entries.find((e) => key(e) === key(entry));
      if (same !== undefined) return Promise.resolve({ kind: "exists", entry: same });
      entries.push(entry);
      return Promise.resolve({ kind: "created", entry });
    },
    delete(ids) {
      for (const id of ids) {
        const at = entries.findIndex((e) => e.id === id);
        if (at >= 0) entries.splice(at, 1);
      }
      return Promise.resolve();
    },
    [Symbol.dispose]() {},
  };
}

function setup() {
  const api = createFakeApi();
  const options = {
    adminSocket: "/nowhere",
    endpoint: "unix:///agent.sock",
    parentId: PARENT,
    instancePrefix: "gdr.i",
  };
  return { api, entries: createSpireEntries(options, api) };
}

Deno.test("bind() makes one entry for the executor's user, however often it is called", async () => {
  const { api, entries } = setup();
  const executor = await nameOf("1");
  for (let i = 0; i < 3; i++) await entries.bind({ executor, userId: 2001, spiffeId: ID }, call);
  const [entry, ...more] = api.entries;
  assert.equal(more.length, 0);
  assert.equal(entry?.hint, `gdr.i.${executor}`);
  assert.equal(entry?.x509SvidTtl, 300);
  assert.deepEqual(entry?.selectors.map((s) => `${s.type}:${s.value}`), ["unix:uid:2001"]);
  assert.deepEqual(await entries.list(call), [executor]);
  assert.equal(await entries.endpoint(executor, 2001, call), "unix:///agent.sock");
});

Deno.test("bind() replaces the executor's entry when user or SPIFFE ID differ", async () => {
  const { api, entries } = setup();
  const executor = await nameOf("1");
  await entries.bind({ executor, userId: 2001, spiffeId: ID }, call);
  await entries.bind({ executor, userId: 2002, spiffeId: ID }, call);
  await entries.bind({ executor, userId: 2002, spiffeId: `${ID}2` }, call);
  assert.deepEqual(api.entries.map((e) => [e.spiffeId?.path, e.selectors[0]?.value]), [
    ["/ci/acme/app/build2", "uid:2002"],
  ]);
});

Deno.test("bind() takes over a leftover of ours, and nothing of others", async () => {
  const { api, entries } = setup();
  await entries.bind({ executor: await nameOf("1"), userId: 2001, spiffeId: ID }, call);
  await entries.bind({ executor: await nameOf("2"), userId: 2001, spiffeId: ID }, call);
  assert.deepEqual(await entries.list(call), [await nameOf("2")]);
  const other = api.entries[0];
  assert(other !== undefined);
  other.hint = "gdr.i2.other";
  const target = { executor: await nameOf("3"), userId: 2001, spiffeId: ID };
  await assert.rejects(
    entries.bind(target, call),
    (error) => error instanceof BackendError && error.code === "conflict",
  );
  await entries.unbind(await nameOf("3"), call);
  assert.deepEqual(api.entries, [other]);
  assert.deepEqual(await entries.list(call), []);
});

Deno.test("unbind() deletes the executor's entries only; absent is success", async () => {
  const { entries } = setup();
  await entries.bind({ executor: await nameOf("1"), userId: 2001, spiffeId: ID }, call);
  await entries.bind({ executor: await nameOf("11"), userId: 2002, spiffeId: ID }, call);
  await entries.unbind(await nameOf("1"), call);
  await entries.unbind(await nameOf("1"), call);
  assert.deepEqual(await entries.list(call), [await nameOf("11")]);
});

Deno.test("idOf() splits a SPIFFE ID and refuses what is none", () => {
  assert.deepEqual(idOf(ID), { trustDomain: "test.example", path: "/ci/acme/app/build" });
  for (const odd of ["https://a/b", "spiffe://a", "spiffe:///b"]) {
    assert.throws(() => idOf(odd), TypeError, odd);
  }
});
