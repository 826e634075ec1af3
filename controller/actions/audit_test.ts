import assert from "node:assert/strict";
import { type AuditEntry, auditPage } from "./audit.ts";

function entry(n: number, over: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: `a-${n}`,
    at: 1_800_000_000_000 + n,
    actor: n % 2 === 0 ? "alice" : "Bob",
    role: "operator",
    action: "cordon",
    target: "pod",
    before: null,
    after: null,
    note: "",
    requestId: `r-${n}`,
    result: "done",
    error: null,
    ...over,
  };
}

const stored = Array.from({ length: 7 }, (_, n) => ({ seq: 10 * n + 1, entry: entry(n) }));
const ids = (page: ReturnType<typeof auditPage>) => page.items.map(({ id }) => id);

Deno.test("auditPage() pages newest first, and a new entry moves nothing to another page", () => {
  const first = auditPage(stored, { limit: 3, cursor: null });
  assert.deepEqual(ids(first), ["a-6", "a-5", "a-4"]);
  assert.equal(first.total, 7);
  const more = [...stored, { seq: 99, entry: entry(9) }];
  const second = auditPage(more, { limit: 3, cursor: first.nextCursor });
  assert.deepEqual(ids(second), ["a-3", "a-2", "a-1"]);
  const third = auditPage(more, { limit: 3, cursor: second.nextCursor });
  assert.deepEqual([ids(third), third.nextCursor], [["a-0"], null]);
});

Deno.test("auditPage() selects by actor, action, target and result, without case", () => {
  const mixed = [
    ...stored,
    { seq: 80, entry: entry(8, { action: "release", target: "gitea-task-1", result: "refused" }) },
  ];
  const all = { limit: 50, cursor: null };
  assert.deepEqual(ids(auditPage(mixed, { ...all, actor: "BOB" })), ["a-5", "a-3", "a-1"]);
  assert.deepEqual(ids(auditPage(mixed, { ...all, action: "release" })), ["a-8"]);
  assert.deepEqual(ids(auditPage(mixed, { ...all, target: "gitea-task-1" })), ["a-8"]);
  assert.deepEqual(ids(auditPage(mixed, { ...all, result: "refused" })), ["a-8"]);
  assert.equal(auditPage(mixed, { ...all, actor: "al" }).total, 0);
});

Deno.test("auditPage() shows once what a later leader has told again", () => {
  const again = [...stored, { seq: 90, entry: entry(3) }];
  assert.equal(auditPage(again, { limit: 50, cursor: null }).total, 7);
});

Deno.test("auditPage() refuses a cursor that is none of ours", () => {
  assert.throws(() => auditPage(stored, { limit: 1, cursor: "x" }), RangeError);
});
