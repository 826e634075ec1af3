import assert from "node:assert/strict";
import { createKeyedMutex } from "./keyed_mutex.ts";

const { signal } = new AbortController();
const turn = () => new Promise((resolve) => setTimeout(resolve, 0));

Deno.test("run() lets one in at a time for each key, in the order of arrival", async () => {
  const mutex = createKeyedMutex();
  const entered: string[] = [];
  const gates = new Map(["a1", "a2", "b1"].map((name) => [name, Promise.withResolvers<void>()]));
  const enter = (key: string, name: string) =>
    mutex.run(key, signal, async () => {
      entered.push(name);
      await gates.get(name)?.promise;
      return name;
    });
  const all = [enter("a", "a1"), enter("a", "a2"), enter("b", "b1")];
  await turn();
  assert.deepEqual(entered, ["a1", "b1"]);
  gates.get("a1")?.resolve();
  await turn();
  assert.deepEqual(entered, ["a1", "b1", "a2"]);
  gates.get("a2")?.resolve();
  gates.get("b1")?.resolve();
  assert.deepEqual(await Promise.all(all), ["a1", "a2", "b1"]);
});

Deno.test("run() lets nobody past the first when the one between them gives up", async () => {
  const mutex = createKeyedMutex();
  const gate = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const entered: string[] = [];
  const first = mutex.run("a", signal, async () => {
    entered.push("first");
    await gate.promise;
  });
  const second = mutex.run("a", leaving.signal, () => Promise.resolve(void entered.push("second")));
  leaving.abort(new Error("gave up"));
  await assert.rejects(second, /gave up/);
  const third = mutex.run("a", signal, () => Promise.resolve(void entered.push("third")));
  await turn();
  assert.deepEqual(entered, ["first"]);
  gate.resolve();
  await Promise.all([first, third]);
  assert.deepEqual(entered, ["first", "third"]);
});

Deno.test("run() goes on after work that fails", async () => {
  const mutex = createKeyedMutex();
  await assert.rejects(mutex.run("a", signal, () => Promise.reject(new Error("failed"))), /failed/);
  assert.equal(await mutex.run("a", signal, () => Promise.resolve(1)), 1);
});
