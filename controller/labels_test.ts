import assert from "node:assert/strict";
import { fc } from "../tests/support/property.ts";
import {
  type BackendLoad,
  labelsOf,
  MAX_OLDEST_WAIT_MS,
  NO_BACKLOG,
  type Withdrawal,
} from "./labels.ts";
import { NO_FLAGS } from "./records.ts";

const note = { by: "op", at: 1, note: "" };
const calm: BackendLoad = {
  enabled: true,
  flags: NO_FLAGS,
  pending: 0,
  pendingLimit: 20,
  oldestWaitMs: null,
};

interface Row {
  readonly when: string;
  readonly pod?: Partial<BackendLoad>;
  readonly vm?: Partial<BackendLoad>;
  readonly vmLabel?: string;
  readonly labels: readonly string[];
  readonly withdrawn?: { readonly pod?: Withdrawal; readonly vm?: Withdrawal };
}

const rows: readonly Row[] = [
  { when: "both backends are calm", labels: ["self-hosted", "pod", "vm"] },
  {
    when: "the canary label is configured",
    vmLabel: "vm-dev",
    labels: ["self-hosted", "pod", "vm-dev"],
  },
  {
    when: "an operator has overridden the vm label",
    vm: { flags: { ...NO_FLAGS, label: { ...note, value: "vm-dev", replaced: "vm" } } },
    labels: ["self-hosted", "pod", "vm-dev"],
  },
  {
    when: "one worker is not enabled",
    vm: { enabled: false },
    labels: ["self-hosted", "pod"],
    withdrawn: { vm: "disabled" },
  },
  {
    when: "one backend is cordoned",
    pod: { flags: { ...NO_FLAGS, cordon: note } },
    labels: ["self-hosted", "vm"],
    withdrawn: { pod: "cordoned" },
  },
  {
    when: "one backend drains",
    pod: { flags: { ...NO_FLAGS, drain: { ...note, deadline: null, hold: false } } },
    labels: ["self-hosted", "vm"],
    withdrawn: { pod: "cordoned" },
  },
  {
    when: "nothing is left",
    pod: { flags: { ...NO_FLAGS, cordon: note } },
    vm: { enabled: false },
    labels: [],
    withdrawn: { pod: "cordoned", vm: "disabled" },
  },
  {
    when: "one task is missing to the limit",
    pod: { pending: 19 },
    labels: ["self-hosted", "pod", "vm"],
  },
  {
    when: "the pending limit is reached",
    pod: { pending: 20 },
    labels: ["self-hosted", "vm"],
    withdrawn: { pod: "backlog" },
  },
  {
    when: "there is no limit",
    pod: { pending: 10_000, pendingLimit: 0, oldestWaitMs: 1000 },
    labels: ["self-hosted", "pod", "vm"],
  },
  {
    when: "the oldest waits exactly 20 minutes",
    pod: { pending: 1, oldestWaitMs: MAX_OLDEST_WAIT_MS },
    labels: ["self-hosted", "pod", "vm"],
  },
  {
    when: "the oldest waits over 20 minutes, limit or not",
    pod: { pending: 1, pendingLimit: 0, oldestWaitMs: MAX_OLDEST_WAIT_MS + 1 },
    labels: ["self-hosted", "vm"],
    withdrawn: { pod: "backlog" },
  },
];

for (const row of rows) {
  Deno.test(`labelsOf() declares ${row.labels.join(" ") || "nothing"} when ${row.when}`, () => {
    const decision = labelsOf({
      backends: { pod: { ...calm, ...row.pod }, vm: { ...calm, ...row.vm } },
      vmLabel: row.vmLabel ?? "vm",
    }, NO_BACKLOG);
    assert.deepEqual(decision.labels, row.labels);
    assert.deepEqual(decision.withdrawn, { pod: null, vm: null, ...row.withdrawn });
  });
}

Deno.test("labelsOf() gives a label back at half the limit and not before", () => {
  let backlogged = NO_BACKLOG;
  const offered = (pending: number) => {
    const backends = { pod: { ...calm, pending }, vm: calm };
    const decision = labelsOf({ backends, vmLabel: "vm" }, backlogged);
    backlogged = decision.backlogged;
    return decision.labels.includes("pod");
  };
  assert.deepEqual([19, 20, 19, 11, 10, 19, 20].map(offered), [
    true,
    false,
    false,
    false,
    true,
    true,
    false,
  ]);
});

Deno.test("labelsOf() is ordered, free of duplicates and steady when asked again", () => {
  const load = fc.record({
    enabled: fc.boolean(),
    flags: fc.boolean().map((cordoned) => ({ ...NO_FLAGS, cordon: cordoned ? note : null })),
    pending: fc.nat(60),
    pendingLimit: fc.nat(40),
    oldestWaitMs: fc.option(fc.nat(2 * MAX_OLDEST_WAIT_MS)),
  });
  const before = fc.record({ pod: fc.boolean(), vm: fc.boolean() });
  fc.assert(fc.property(load, load, before, (pod, vm, before) => {
    const input = { backends: { pod, vm }, vmLabel: "vm" };
    const once = labelsOf(input, before);
    assert.deepEqual(labelsOf(input, once.backlogged), once);
    assert.equal(new Set(once.labels).size, once.labels.length);
    assert(once.labels.length === 0 || once.labels[0] === "self-hosted");
    assert.notDeepEqual(once.labels, ["self-hosted"]);
    for (const [name, { enabled, flags }] of [["pod", pod], ["vm", vm]] as const) {
      if (!enabled || flags.cordon !== null) assert(!once.labels.includes(name));
    }
  }));
});
