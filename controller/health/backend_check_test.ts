import assert from "node:assert/strict";
import { executorOf } from "../../tests/support/executor_of.ts";
import type { Backend } from "../backend.ts";
import { checkBackend } from "./backend_check.ts";

const { signal } = new AbortController();

function backend(others?: readonly string[]): Pick<Backend, "list" | "others"> {
  return {
    list: () => Promise.resolve([executorOf({ name: "ci-1" }), executorOf({ name: "ci-2" })]),
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
    executor: executorOf({ name }),
    ownership: "foreign" as const,
    why: "another instance",
  }));
  await assert.rejects(
    checkBackend(backend(), strangers, signal),
    /4 are unknown or foreign \(a, b, c\);/,
  );
});
