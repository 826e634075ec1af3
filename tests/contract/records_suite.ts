import assert from "node:assert/strict";
import type { ExecutorName, TaskId } from "../../controller/model/ids.ts";
import type { TaskRecord } from "../../controller/model/record.ts";
import { QueueError } from "../../controller/queue.ts";
import {
  type ControlFlags,
  type ControlStore,
  type FlagStore,
  NO_FLAGS,
  type Records,
} from "../../controller/records.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";

/** A bucket with two controllers on it. */
export interface RecordsWorld extends AsyncDisposable {
  readonly records: Records;
  /** The same bucket as another controller sees it. */
  readonly other: Records;
  readonly control: ControlStore;
  readonly flags: FlagStore;
  /** Writes flags as the operator's action does. */
  setFlags(flags: ControlFlags): Promise<void>;
}

/** A record of a task that nobody has worked on; what is given replaces its fields. */
export function recordOf(over: Partial<TaskRecord> = {}): TaskRecord {
  return {
    backend: "pod",
    repository: "owner/repo",
    job: "build",
    ref: "refs/heads/main",
    spiffeId: "spiffe://example.org/ci/owner/repo/build",
    fork: false,
    runId: "5",
    giteaUrl: null,
    serverUrl: "https://gitea.example.org",
    storedAt: 1_800_000_000_000,
    nonce: "nonce-1",
    uid: null,
    claimedBy: null,
    logOffset: 0,
    steps: [],
    failures: 0,
    parkedUntil: null,
    released: null,
    terminal: null,
    epoch: 1,
    ...over,
  };
}

const T = (n: number) => `${n}` as TaskId;
const isConflict = (error: unknown) => error instanceof QueueError && error.code === "conflict";

/** What every store of records promises; runs on the fake and on the real server. */
export function recordsContract(name: string, setup: () => Promise<RecordsWorld>): void {
  Deno.test(`${name}: get() gives what was written, whole`, async () => {
    await using world = await setup();
    assert.equal(await world.records.get(T(1), call), undefined);
    const record = recordOf({
      uid: "uid-1",
      claimedBy: { executor: "ci-00-1" as ExecutorName, gate: "ab", at: 5 },
      steps: [{ id: 0, result: "success", startedAt: 1, stoppedAt: 2, logIndex: 3, logLength: 4 }],
      reported: {
        result: "cancelled",
        steps: [{ id: 0, result: null, startedAt: 1, stoppedAt: 0, logIndex: 3, logLength: 4 }],
        row: "gitea-dynamic-runner: why",
        at: 6,
      },
      terminal: { result: "failure", at: 9 },
      parkedUntil: 7,
      released: 8,
    });
    const made = await world.records.create(T(1), record, call);
    assert.deepEqual(made.value, record);
    assert.deepEqual(await world.records.get(T(1), call), made);
    assert.deepEqual(await world.other.get(T(1), call), made);
  });

  Deno.test(`${name}: create() refuses to replace a record`, async () => {
    await using world = await setup();
    await world.other.create(T(1), recordOf({ nonce: "theirs" }), call);
    await assert.rejects(world.records.create(T(1), recordOf(), call), isConflict);
    assert.equal((await world.records.get(T(1), call))?.value.nonce, "theirs");
  });

  Deno.test(`${name}: update() replaces only the revision it names`, async () => {
    await using world = await setup();
    const first = await world.records.create(T(1), recordOf(), call);
    const second = await world.records.update(
      T(1),
      recordOf({ failures: 1 }),
      first.revision,
      call,
    );
    assert.ok(second.revision > first.revision);
    await assert.rejects(
      world.records.update(T(1), recordOf({ failures: 2 }), first.revision, call),
      isConflict,
    );
    assert.equal((await world.records.get(T(1), call))?.value.failures, 1);
    await assert.rejects(world.records.update(T(2), recordOf(), 1, call), isConflict);
  });

  Deno.test(`${name}: update() that lost to another controller is followed by a true read`, async () => {
    await using world = await setup();
    const mine = await world.records.create(T(1), recordOf(), call);
    const theirs = await world.other.update(
      T(1),
      recordOf({ nonce: "theirs" }),
      mine.revision,
      call,
    );
    await assert.rejects(
      world.records.update(T(1), recordOf({ nonce: "mine" }), mine.revision, call),
      isConflict,
    );
    assert.deepEqual(await world.records.get(T(1), call), theirs);
  });

  Deno.test(`${name}: an older epoch's write is refused for good`, async () => {
    await using world = await setup();
    const first = await world.records.create(T(1), recordOf({ epoch: 5 }), call);
    const error = await world.records.update(T(1), recordOf({ epoch: 4 }), first.revision, call)
      .catch((error) => error);
    assert.ok(isConflict(error) && !error.retryable);
    assert.equal((await world.records.get(T(1), call))?.value.epoch, 5);
  });

  Deno.test(`${name}: a controller that was superseded can make no record either`, async () => {
    await using world = await setup();
    const old = await world.control.takeOver(call);
    await world.records.create(T(1), recordOf({ epoch: old }), call);
    const now = await world.control.takeOver(call);
    await world.other.create(T(2), recordOf({ epoch: now }), call);
    let n = 10;
    const error = await eventually(
      () =>
        world.records.create(T(n++), recordOf({ epoch: old }), call).then(
          () => undefined,
          (error) => error,
        ),
      { what: "the older epoch to be refused", timeoutMs: 3_000 },
    );
    assert.ok(isConflict(error));
  });

  Deno.test(`${name}: delete() removes the record, and is done when there is none`, async () => {
    await using world = await setup();
    await world.records.create(T(1), recordOf(), call);
    await world.records.delete(T(1), call);
    await world.records.delete(T(1), call);
    assert.equal(await world.records.get(T(1), call), undefined);
    assert.equal(await world.other.get(T(1), call), undefined);
    const again = await world.records.create(T(1), recordOf({ nonce: "again" }), call);
    assert.equal(again.value.nonce, "again");
  });

  Deno.test(`${name}: list() reads every record from the server, each with its revision`, async () => {
    await using world = await setup();
    assert.equal((await world.records.list(call)).size, 0);
    for (let n = 1; n <= 30; n++) await world.other.create(T(n), recordOf({ nonce: `${n}` }), call);
    await world.other.delete(T(7), call);
    const listed = await world.records.list(call);
    assert.equal(listed.size, 29);
    assert.equal(listed.has(T(7)), false);
    const one = listed.get(T(30));
    assert.equal(one?.value.nonce, "30");
    const next = recordOf({ nonce: "next" });
    await world.records.update(T(30), next, one?.revision ?? 0, call);
    assert.equal((await world.records.get(T(30), call))?.value.nonce, "next");
    // Known to be absent, and yet made by somebody else meanwhile: the create tells.
    assert.equal(await world.records.get(T(7), call), undefined);
    await world.other.create(T(7), recordOf({ nonce: "theirs" }), call);
    await assert.rejects(world.records.create(T(7), recordOf(), call), isConflict);
    assert.equal((await world.records.get(T(7), call))?.value.nonce, "theirs");
  });

  Deno.test(`${name}: takeOver() gives every leader an epoch of its own`, async () => {
    await using world = await setup();
    assert.equal(await world.control.epoch(call), 0);
    const epochs = await Promise.all([1, 2, 3, 4].map(() => world.control.takeOver(call)));
    assert.deepEqual(epochs.toSorted(), [1, 2, 3, 4]);
    assert.equal(await world.control.epoch(call), 4);
  });

  Deno.test(`${name}: flags() gives what an operator has set, else nothing`, async () => {
    await using world = await setup();
    assert.deepEqual(await world.control.flags("pod", call), NO_FLAGS);
    const note = { by: "alice", at: 5, note: "canary" };
    const flags: ControlFlags = {
      cordon: note,
      drain: { ...note, deadline: null, hold: true },
      capacity: { ...note, value: 2, replaced: 4 },
      label: { ...note, value: "vm", replaced: "vm-dev" },
    };
    await world.setFlags(flags);
    assert.deepEqual(await world.control.flags("pod", call), flags);
    assert.deepEqual(await world.control.flags("vm", call), NO_FLAGS);
  });

  Deno.test(`${name}: flags.write() replaces only the revision it names, and keeps who wrote`, async () => {
    await using world = await setup();
    const nothing = await world.flags.read("pod", call);
    assert.deepEqual(nothing, { flags: NO_FLAGS, revision: 0, operation: null });
    const note = { by: "alice", at: 5, note: "a node is replaced" };
    const drain = { ...note, deadline: 9, hold: false, operation: "op-1" };
    const forgotten = [{ ...note, name: "stray", uid: "u-1" }];
    const next = { ...nothing, flags: { ...NO_FLAGS, drain, forgotten }, operation: "op-1" };
    const written = await world.flags.write("pod", next, call);
    assert.ok(written.revision > 0);
    assert.deepEqual(await world.flags.read("pod", call), written);
    assert.deepEqual(await world.control.flags("pod", call), next.flags);
    await assert.rejects(world.flags.write("pod", next, call), isConflict);
    const lifted = await world.flags.write("pod", {
      flags: NO_FLAGS,
      revision: written.revision,
      operation: "op-2",
    }, call);
    assert.deepEqual(await world.flags.read("pod", call), lifted);
  });

  Deno.test(`${name}: methods reject with the signal's reason when aborted`, async () => {
    await using world = await setup();
    const reason = new Error("stopped by the test");
    const aborted = { signal: AbortSignal.abort(reason) };
    const same = (error: unknown) => error === reason;
    await assert.rejects(world.records.create(T(1), recordOf(), aborted), same);
    await assert.rejects(world.records.list(aborted), same);
    await assert.rejects(world.control.takeOver(aborted), same);
    assert.equal(await world.records.get(T(1), call), undefined);
  });
}
