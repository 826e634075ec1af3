import assert from "node:assert/strict";
import { changeFlags, type FlagAction, outdatedOverrides, undoDrain } from "./actions_flags.ts";
import { type ControlFlags, NO_FLAGS } from "../records.ts";

const note = { by: "alice", at: 1_800_000_000_000, note: "a node is replaced" };
const configured = { capacity: 4, label: "vm" };
const act = (action: FlagAction, flags: ControlFlags = NO_FLAGS) =>
  changeFlags(action, flags, { note, operation: "op-1", configured });
const changed = (action: FlagAction, flags?: ControlFlags) => {
  const change = act(action, flags);
  assert.equal(change.kind, "changed", JSON.stringify(change));
  return change.kind === "changed" ? change : assert.fail();
};
const refused = (action: FlagAction, flags?: ControlFlags) => {
  const change = act(action, flags);
  return change.kind === "refused" ? change.detail : assert.fail("it was not refused");
};

Deno.test("changeFlags() cordons once, and a resume lifts it", () => {
  const cordon = { kind: "cordon", backend: "pod" } as const;
  const { flags, before, after } = changed(cordon);
  assert.deepEqual(flags, { ...NO_FLAGS, cordon: note });
  const shown = { ...note, at: "2027-01-15T08:00:00.000Z" };
  assert.deepEqual([before, after], [{ cordoned: null }, { cordoned: shown }]);
  assert.match(refused(cordon, flags), /^Resume "pod" first: it was cordoned by "alice" at 2027-/);
  const resumed = changed({ kind: "resume", backend: "pod" }, flags);
  assert.deepEqual(resumed.flags, NO_FLAGS);
  assert.deepEqual([resumed.before, resumed.after], [{ cordoned: shown }, { cordoned: null }]);
  assert.match(refused({ kind: "resume", backend: "pod" }), /neither cordoned nor drained/);
});

Deno.test("changeFlags() drains beside a cordon, undo leaves the cordon, a resume lifts both", () => {
  const cordoned = { ...NO_FLAGS, cordon: { ...note, by: "bob" } };
  const { flags } = changed({
    kind: "drain",
    backend: "pod",
    hold: true,
    deadline: { kind: "within", ms: 60_000 },
  }, cordoned);
  const drain = { ...note, deadline: note.at + 60_000, hold: true, operation: "op-1" };
  assert.deepEqual(flags, { ...cordoned, drain });
  const again = { kind: "drain", backend: "pod", hold: false, deadline: null } as const;
  assert.match(refused(again, flags), /^Undo that drain first/);
  const undone = undoDrain(flags, "op-1");
  assert.deepEqual(undone.kind === "changed" && undone.flags, cordoned);
  assert.equal(undoDrain(flags, "op-2").kind, "refused");
  assert.equal(undoDrain(cordoned, "op-1").kind, "refused");
  assert.deepEqual(changed({ kind: "resume", backend: "pod" }, flags).flags, NO_FLAGS);
});

Deno.test("changeFlags() refuses a drain whose deadline is over already", () => {
  const deadline = { kind: "at", at: note.at } as const;
  assert.match(refused({ kind: "drain", backend: "pod", hold: false, deadline }), /later deadline/);
});

Deno.test("changeFlags() keeps the configured value beside the override, and drops an override that is none", () => {
  const capacity = (value: number | null) => ({ kind: "capacity", backend: "pod", value }) as const;
  const { flags, before, after } = changed(capacity(2));
  assert.deepEqual(flags.capacity, { ...note, value: 2, replaced: 4 });
  assert.deepEqual([before, after], [{ capacity: 4 }, { capacity: 2 }]);
  assert.match(refused(capacity(2), flags), /it is 2 already/);
  assert.equal(changed(capacity(4), flags).flags.capacity, null);
  assert.deepEqual(changed(capacity(null), flags).after, { capacity: 4 });
  assert.match(refused(capacity(null)), /it is 4 already/);
  assert.match(refused(capacity(4)), /it is 4 already/);
  const label = changed({ kind: "label", backend: "vm", value: "vm-dev" });
  assert.deepEqual(label.flags.label, { ...note, value: "vm-dev", replaced: "vm" });
});

Deno.test("outdatedOverrides() drops what replaced another value than the configured one", () => {
  const flags = {
    ...NO_FLAGS,
    cordon: note,
    capacity: { ...note, value: 2, replaced: 4 },
    label: { ...note, value: "vm", replaced: "vm-dev" },
  };
  assert.deepEqual(outdatedOverrides(flags, { capacity: 4, label: "vm-dev" }), {
    flags,
    dropped: [],
  });
  assert.deepEqual(outdatedOverrides(flags, { capacity: 6, label: "vm-dev" }), {
    flags: { ...flags, capacity: null },
    dropped: ["capacity"],
  });
  assert.deepEqual(outdatedOverrides(flags, { capacity: 6, label: "vm" }).dropped, [
    "capacity",
    "label",
  ]);
});
