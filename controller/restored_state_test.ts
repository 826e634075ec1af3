import assert from "node:assert/strict";
import { recordOf } from "../tests/contract/records_suite.ts";
import { executorOf } from "../tests/support/executor_of.ts";
import type { Executor } from "./backend.ts";
import type { TaskRecord } from "./model/record.ts";
import type { State } from "./model/state.ts";
import { restoredState } from "./restored_state.ts";

const NOW = 1_000_000;
const alive = executorOf({ uid: "u1", identityTarget: "t" });
const { name } = alive;
const ended: Executor = {
  ...alive,
  ended: { code: "executor_failed", detail: "exit code 1", exitCode: 1, lastLines: [] },
};
const claimedBy = { executor: name, gate: "g", at: 1 };
const terminal = { result: "success", at: 2 } as const;

interface Case {
  readonly is: string;
  readonly record: Partial<TaskRecord> | null;
  readonly executor: Executor | null;
  readonly stored: boolean;
  readonly expected: State;
}

const cases: readonly Case[] = [
  {
    is: "a message only",
    record: null,
    executor: null,
    stored: true,
    expected: { kind: "stored" },
  },
  {
    is: "a record whose executor was never made",
    record: {},
    executor: null,
    stored: true,
    expected: { kind: "stored" },
  },
  {
    is: "one that an operator gave up, and whose executor lives on",
    record: { claimedBy, uid: "u1", released: 5 },
    executor: alive,
    stored: false,
    expected: {
      kind: "settling",
      shown: "running",
      executor: name,
      presence: "leaving",
      message: "gone",
      result: "failure",
      reason: {
        code: "cancelled",
        detail: "an operator gave this job up before the controller was restarted",
      },
    },
  },
  {
    is: "one that an operator gave up after its end, and whose executor lives on",
    record: { claimedBy, uid: "u1", released: 5, terminal },
    executor: alive,
    stored: false,
    expected: {
      kind: "terminal",
      result: "success",
      executor: name,
      presence: "leaving",
      marker: "pending",
      message: "gone",
    },
  },
  {
    is: "one that is parked for some time yet",
    record: { parkedUntil: NOW + 1, failures: 5 },
    executor: null,
    stored: true,
    expected: { kind: "parked", until: NOW + 1 },
  },
  {
    is: "one whose parking is over",
    record: { parkedUntil: NOW, failures: 5 },
    executor: null,
    stored: true,
    expected: { kind: "stored" },
  },
  {
    is: "an executor that nobody has claimed with",
    record: { uid: "u1" },
    executor: alive,
    stored: true,
    expected: { kind: "starting", executor: name },
  },
  {
    is: "a claim that is not acknowledged",
    record: { uid: "u1", claimedBy },
    executor: alive,
    stored: true,
    expected: {
      kind: "claimed",
      executor: name,
      presence: "alive",
      ack: "waiting",
      final: null,
    },
  },
  {
    is: "a running job",
    record: { uid: "u1", claimedBy },
    executor: alive,
    stored: false,
    expected: { kind: "running", executor: name, presence: "alive" },
  },
  {
    is: "a job whose executor has ended meanwhile",
    record: { uid: "u1", claimedBy },
    executor: ended,
    stored: false,
    expected: { kind: "running", executor: name, presence: "ended" },
  },
  {
    is: "a job whose executor is gone",
    record: { uid: "u1", claimedBy },
    executor: null,
    stored: false,
    expected: { kind: "running", executor: name, presence: "gone" },
  },
  {
    is: "an end that is not marked",
    record: { uid: "u1", claimedBy, terminal },
    executor: ended,
    stored: false,
    expected: {
      kind: "terminal",
      result: "success",
      executor: name,
      presence: "ended",
      marker: "pending",
      message: "gone",
    },
  },
  {
    is: "an end that is marked, though the record does not say so",
    record: { uid: "u1", claimedBy },
    executor: { ...alive, terminal: true },
    stored: true,
    expected: {
      kind: "terminal",
      result: "failure",
      executor: name,
      presence: "alive",
      marker: "held",
      message: "in_hand",
    },
  },
  {
    is: "an end whose executor is gone",
    record: { uid: "u1", claimedBy, terminal },
    executor: null,
    stored: false,
    expected: {
      kind: "terminal",
      result: "success",
      executor: name,
      presence: "gone",
      marker: "moot",
      message: "gone",
    },
  },
];
for (const { is, record, executor, stored, expected } of cases) {
  Deno.test(`restoredState() restores ${is} as ${expected.kind}`, () => {
    const left = { record: record === null ? null : recordOf(record), executor, stored, now: NOW };
    assert.deepEqual(restoredState(left), expected);
  });
}
