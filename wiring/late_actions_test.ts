import assert from "node:assert/strict";
import type { ActionRequest, Actions } from "../controller/actions/actions.ts";
import type { AuditEntry } from "../controller/actions/audit.ts";
import type { LeaderView } from "../controller/views/views.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { createLateActions } from "./late_actions.ts";

const CORDON = { kind: "cordon", backend: "pod" } as const;
const REQUEST: ActionRequest = {
  actor: { name: "mira", role: "operator" },
  note: "kernel update",
  requestId: "r-1",
  key: null,
  ifMatch: null,
};

function setup(leader: Partial<LeaderView>, address: string | null = null) {
  const view = { mode: "nats", holder: null, self: "gdr-1", leading: false, ...leader };
  const clock = createFakeClock();
  const kept: AuditEntry[] = [];
  const actions = createLateActions(() => view as LeaderView, {
    upstream: () => address === null ? null : { address },
    clock,
    logger: silentLogger,
  });
  return {
    view,
    clock,
    actions,
    kept,
    cordon: (requestId = "r-1") =>
      actions.act(CORDON, { ...REQUEST, requestId }, { signal: AbortSignal.timeout(1_000) }),
    audit: { append: (entry: AuditEntry) => kept.push(entry) },
  };
}

Deno.test("createLateActions() audits a refusal of the start once there is an audit, and none twice", async () => {
  const t = setup({});
  const outcome = await t.cordon();
  assert.equal(outcome.kind, "unavailable");
  assert.equal(t.kept.length, 0);
  t.actions.auditTo(t.audit);
  t.actions.auditTo(t.audit);
  assert.equal(t.kept.length, 1);
  assert.deepEqual(t.kept[0], {
    id: t.kept[0]?.id,
    at: t.clock.now(),
    actor: "mira",
    role: "operator",
    action: "cordon",
    target: "pod",
    before: null,
    after: null,
    note: "kernel update",
    requestId: "r-1",
    result: "refused",
    error: "Try again in a moment: this process does not lead yet",
  });
});

Deno.test("createLateActions() audits at a standby what it refuses, with who leads", async () => {
  const t = setup({ holder: "gdr-0" });
  t.actions.auditTo(t.audit);
  await t.cordon();
  t.actions.refused({ kind: "label", target: "vm" }, REQUEST, "A viewer may not");
  assert.deepEqual(t.kept.map(({ action, error }) => [action, error]), [
    ["cordon", 'Ask the leader: it is "gdr-0"'],
    ["label", "A viewer may not"],
  ]);
});

Deno.test("createLateActions() says where the leader's dashboard is, when that is known", async () => {
  const t = setup({ holder: "gdr-0" }, "10.0.0.7:8080");
  const outcome = await t.cordon();
  assert.ok(outcome.kind === "unavailable");
  assert.equal(outcome.detail, 'Ask the leader: it is "gdr-0" at 10.0.0.7:8080');
});

Deno.test("createLateActions() keeps the newest hundred refusals until there is an audit", async () => {
  const t = setup({});
  for (let count = 0; count < 103; count++) await t.cordon(`r-${count}`);
  t.actions.auditTo(t.audit);
  assert.equal(t.kept.length, 100);
  assert.equal(t.kept[0]?.requestId, "r-3");
  assert.equal(t.kept.at(-1)?.requestId, "r-102");
});

Deno.test("createLateActions() leaves the leader's refusals to the leader's actions", async () => {
  const t = setup({ holder: "gdr-1", leading: true });
  const told: string[] = [];
  const acting: Actions = {
    act: () => Promise.resolve({ kind: "absent", detail: "none" }),
    preview: () => undefined,
    tagOf: () => null,
    refused: (_action, _request, error) => told.push(error),
  };
  t.actions.auditTo(t.audit);
  t.actions.become(acting);
  assert.equal((await t.cordon()).kind, "absent");
  t.actions.refused({ kind: "cordon", target: "pod" }, REQUEST, "no");
  t.view.leading = false;
  await t.cordon();
  assert.deepEqual([told, t.kept.length], [["no"], 1]);
});
