import assert from "node:assert/strict";
import type { Backend, Executor } from "../backend.ts";
import { checkBackend } from "./backend_check.ts";
import type { ExecutorName } from "../model/ids.ts";

const { signal } = new AbortController();

function executor(name: string): Executor {
  return {
    name: name as ExecutorName,
    uid: name,
    phase: "Running",
    metadata: { labels: {}, annotations: {} },
    createdAt: 0,
    identityTarget: null,
    terminating: false,
    ended: null,
    terminal: false,
    node: null,
    waiting: null,
  };
}

function backend(others?: readonly string[]): Pick<Backend, "list" | "others"> {
  return {
    list: () => Promise.resolve([executor("ci-1"), executor("ci-2")]),
    ...others === undefined ? {} : { others: () => Promise.resolve(others) },
  };
}

Deno.test("checkBackend() says how many executors there are when nothing else is there", async () => {
  for (const others of [undefined, []]) {
    assert.equal(
      await checkBackend(backend(others), [], signal),
      "lists 2 executors, all of them accounted for, and nothing else",
    );
  }
});

Deno.test("checkBackend() names one of what no controller of executors has made", async () => {
  await assert.rejects(checkBackend(backend(["nginx-7d", "cache-0"]), [], signal), {
    message: "Find out whose they are: 2 that no controller of executors has made, one of them " +
      '"nginx-7d"; the place of our executors is for us alone',
  });
});

Deno.test("checkBackend() names executors that are unknown or foreign", async () => {
  const strangers = ["a", "b", "c", "d"].map((name) => ({
    executor: executor(name),
    ownership: "foreign" as const,
    why: "another instance",
  }));
  await assert.rejects(
    checkBackend(backend(), strangers, signal),
    /4 are unknown or foreign \(a, b, c\);/,
  );
});
