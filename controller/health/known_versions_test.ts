import assert from "node:assert/strict";
import { judgeVersion, type KnownPart } from "./known_versions.ts";

const CASES: readonly (readonly [KnownPart, string | null, string])[] = [
  ["deno", "2.9.6", "good"],
  ["deno", "2.7.9", "bad"],
  ["deno", "2.7.10", "untried"],
  ["nats-server", "2.15.2", "good"],
  ["nats-server", "2.8.4", "bad"],
  ["nats-server", "2.16.0-RC.1", "untried"],
  ["gitea", "1.26.0", "bad"],
  ["gitea", "1.27.3+7-gabcdef", "good"],
  ["gitea", "1.28.0+dev", "untried"],
  ["gitea", "next", "unknown"],
  ["gitea", null, "unknown"],
];

for (const [part, version, verdict] of CASES) {
  Deno.test(`judgeVersion() knows ${part} ${version} to be ${verdict}`, () => {
    const view = judgeVersion(part, version);
    assert.equal(view.verdict, verdict);
    assert.equal(view.detail === null, verdict === "good" || verdict === "unknown");
  });
}
