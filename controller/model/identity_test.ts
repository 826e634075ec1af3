import assert from "node:assert/strict";
import type { JsonObject, JsonValue } from "../../proto/runtime.ts";
import { fc } from "../../tests/support/property.ts";
import { deriveIdentity } from "./identity.ts";

const TD = "example.org";
const push: JsonObject = { ref: "refs/heads/main" };

function derive(repository: JsonValue, job: JsonValue, event: JsonValue = push): string | null {
  const derived = deriveIdentity({ repository, job, event }, TD);
  return derived.kind === "derived" ? derived.identity.spiffeId : null;
}

const paths: [string, string, string | null][] = [
  ["peeradmin/demo", "second", "/ci/peeradmin/demo/second"],
  ["a/b.c", "build", "/ci/a/b.c/build"],
  ["Owner/Repo", "Deploy", "/ci/owner/repo/Deploy"],
  ["owner/repo", "deploy", "/ci/owner/repo/deploy"],
  ["a/b", "_x-1.2", "/ci/a/b/_x-1.2"],
  ["a/...", "x", "/ci/a/.../x"],
  ["a/b", "../x", null],
  ["a/b", "x/y", null],
  ["a/b", "%2e%2e", null],
  ["a/b", "..", null],
  ["a/b", ".", null],
  ["a/b", "", null],
  ["a/b", "build (1)", null],
  ["a/b", "b\u00fcild", null],
  ["a/b", "build\n", null],
  ["a/b", "x".repeat(300), `/ci/a/b/${"x".repeat(300)}`],
  ["a/b", "x".repeat(2048), null],
  ["a/..", "x", null],
  ["./b", "x", null],
  ["a", "x", null],
  ["a/b/c", "x", null],
  ["/b", "x", null],
  ["a/", "x", null],
  // The Kelvin sign's lower case is an ASCII k.
  ["\u212a/b", "x", null],
];
for (const [repository, job, path] of paths) {
  const shown = `${JSON.stringify(repository)}, ${JSON.stringify(job.slice(0, 20))}`;
  Deno.test(`deriveIdentity() ${path === null ? "refuses" : "accepts"} ${shown}`, () => {
    assert.equal(derive(repository, job), path === null ? null : `spiffe://${TD}${path}`);
  });
}

Deno.test("deriveIdentity() allows exactly 2048 bytes", () => {
  const room = 2048 - `spiffe://${TD}/ci/a/b/`.length;
  assert.equal(derive("a/b", "x".repeat(room))?.length, 2048);
  assert.equal(derive("a/b", "x".repeat(room + 1)), null);
});

Deno.test("deriveIdentity() names what does not fit and what is allowed", () => {
  const derived = deriveIdentity({ repository: "a/b", job: "build (1)", event: push }, TD);
  assert.deepEqual(derived, {
    kind: "permanent",
    detail:
      `job key "build (1)" cannot be part of a SPIFFE ID: use letters, digits, ".", "_" and "-" only`,
  });
  assert.equal(derive(null, "x"), null);
  assert.equal(derive("a/b", 7), null);
  assert.equal(deriveIdentity(undefined, TD).kind, "permanent");
});

const pr = (head: JsonObject, base: JsonObject = { repo: { id: 1 } }): JsonObject => ({
  pull_request: { head: { label: "topic", ref: "topic", repo: { id: 1 }, ...head }, base },
});
const outside: [string, JsonValue, boolean][] = [
  ["a push", push, false],
  ["an event without anything", {}, false],
  ["no event", null, true],
  ["an event as text", "{}", true],
  ["an event as list", [], true],
  ["a pull request of a branch", pr({}), false],
  ["a pull request of a branch, ids as repo_id", {
    pull_request: {
      head: { label: "t", ref: "t", repo_id: 3 },
      base: { label: "m", ref: "m", repo_id: 3 },
    },
  }, false],
  ["a pull request of a fork", pr({ repo: { id: 2 } }), true],
  ["a pull request whose ids disagree", pr({ repo_id: 2 }), true],
  ["a pull request of a deleted fork", pr({ repo: null, repo_id: -1 }), true],
  ["a pull request without head repository", pr({ repo: null }), true],
  ["a pull request without both repositories", pr({ repo: null }, { repo: null }), true],
  ["a pull request without base", { pull_request: { head: { label: "t", ref: "t" } } }, true],
  ["ids of zero", pr({ repo: { id: 0 } }, { repo: { id: 0 } }), true],
  ["ids as text", pr({ repo: { id: "1" } }, { repo: { id: "1" } }), true],
  ["ids that are not exact", pr({ repo: { id: 2 ** 53 } }, { repo: { id: 2 ** 53 } }), true],
  ["an empty head label", pr({ label: "" }), true],
  ["no head label", pr({ label: null }), true],
  ["an agit push", pr({ ref: "refs/pull/3/head" }), true],
  ["no head ref", pr({ ref: null }), true],
  ["a pull request that is null", { pull_request: null }, true],
  ["a comment on a pull request of a fork", { ...pr({ repo: { id: 2 } }), comment: {} }, true],
  ["a comment on an issue", { issue: { pull_request: null }, comment: {} }, false],
  ["a comment on a pull request that is not shown", { issue: { pull_request: {} } }, true],
  ["a workflow run after a push", { workflow_run: { event: "push" } }, false],
  ["a workflow run after a pull request", { workflow_run: { event: "pull_request" } }, true],
  [
    "a workflow run after a pull_request_target",
    { workflow_run: { event: "pull_request_target" } },
    true,
  ],
  ["a workflow run without cause", { workflow_run: {} }, true],
  ["a workflow run that is null", { workflow_run: null }, true],
];
for (const [name, event, fork] of outside) {
  Deno.test(`deriveIdentity() takes ${name} for ${fork ? "outside" : "inside"} code`, () => {
    assert.equal(derive("a/b", "x", event), `spiffe://${TD}/${fork ? "ci-fork" : "ci"}/a/b/x`);
    const derived = deriveIdentity({ repository: "a/b", job: "x", event }, TD);
    assert.equal(derived.kind === "derived" && derived.identity.fork, fork);
  });
}

Deno.test("deriveIdentity() ignores event_name and ref", () => {
  const event = pr({ repo: { id: 2 } });
  for (const event_name of ["push", "workflow_call", "pull_request_review_comment", ""]) {
    const context = { repository: "a/b", job: "x", event, event_name, ref: "refs/heads/main" };
    const derived = deriveIdentity(context, TD);
    assert.ok(derived.kind === "derived" && derived.identity.fork);
  }
});

Deno.test("deriveIdentity() gives two jobs one identity only if they are the same job", () => {
  const segment = fc.string({ maxLength: 6, unit: fc.constantFrom(..."abAB1._-/% ") });
  const source = fc.record({
    owner: segment,
    name: segment,
    job: segment,
    fork: fc.boolean(),
  });
  const event = (fork: boolean) => fork ? pr({ repo: { id: 2 } }) : push;
  fc.assert(
    fc.property(source, source, (a, b) => {
      const [x, y] = [a, b].map((s) => derive(`${s.owner}/${s.name}`, s.job, event(s.fork)));
      const key = (s: typeof a) =>
        JSON.stringify([`${s.owner}/${s.name}`.toLowerCase(), s.job, s.fork]);
      if (x !== null && x === y) assert.equal(key(a), key(b));
      if (x !== null && key(a) === key(b)) assert.equal(x, y);
      // Reversible: the path's segments are the parts.
      if (x !== null && x !== undefined) {
        assert.deepEqual(new URL(x).pathname.split("/").slice(1), [
          a.fork ? "ci-fork" : "ci",
          a.owner.toLowerCase(),
          a.name.toLowerCase(),
          a.job,
        ]);
      }
    }),
    { numRuns: 2_000 },
  );
});
