import assert from "node:assert/strict";
import { type Fields, type Logger, silentLogger } from "../lib/logger.ts";
import { type RegisteredRunner, warnOfOthers } from "./other_runners.ts";

/** What is logged, with these runners at Gitea; ours is number 7. */
async function told(list: () => readonly RegisteredRunner[] | null) {
  const lines: { readonly level: string; readonly message: string; readonly fields: Fields }[] = [];
  const take = (level: string) => (message: string, fields: Fields = {}) =>
    void lines.push({ level, message, fields });
  const logger: Logger = {
    ...silentLogger,
    info: take("info"),
    warn: take("warn"),
    child: () => logger,
  };
  // deno-lint-ignore require-await -- a failure is to be a rejection
  const runners = { runners: async () => list() };
  await warnOfOthers({ runners, ours: "7", logger }, new AbortController().signal);
  return lines;
}

const ours = { id: "7", name: "dynamic", labels: ["self-hosted", "pod"] };

Deno.test("warnOfOthers() names other runners with self-hosted", async () => {
  const [line, ...rest] = await told(() => [
    ours,
    { id: "8", name: "old-machine", labels: ["linux", "self-hosted"] },
    { id: "9", name: "apart", labels: ["linux"] },
  ]);
  assert.equal(line?.level, "warn");
  assert.deepEqual(line?.fields["runners"], ["old-machine"]);
  assert.deepEqual(rest, []);
});

Deno.test("warnOfOthers() is silent when we are alone, and harmless when it cannot know", async () => {
  assert.deepEqual(await told(() => [ours]), []);
  assert.deepEqual((await told(() => null)).map(({ level }) => level), ["info"]);
  const failed = await told(() => {
    throw new Error("no answer");
  });
  assert.deepEqual(failed.map(({ level }) => level), ["warn"]);
});
