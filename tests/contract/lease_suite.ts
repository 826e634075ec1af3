import assert from "node:assert/strict";
import {
  LeaseError,
  type LeaseErrorCode,
  type LeaseRecord,
  type LeaseStore,
} from "../../controller/leadership/lease.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";

/** A Lease that does not exist yet, as two contenders reach it. */
export interface LeaseWorld extends AsyncDisposable {
  readonly store: LeaseStore;
  readonly other: LeaseStore;
  /** Somebody deletes it. */
  delete(): Promise<void>;
}

/** A Lease as another writer may have written it: six digits, none of them zero. */
const RECORD: LeaseRecord = {
  holder: "host_0b7c2c5e",
  durationSeconds: 15,
  acquireTime: "2026-11-30T01:02:03.123456Z",
  renewTime: "2026-11-30T01:02:04.654321Z",
  transitions: 3,
};

const isError = (code: LeaseErrorCode) => (error: unknown) =>
  error instanceof LeaseError && error.code === code;

/** What every store of a Lease promises; runs on the fake and on the real server. */
export function leaseContract(name: string, setup: () => Promise<LeaseWorld>): void {
  Deno.test(`${name}: read() gives nothing when there is no Lease`, async () => {
    await using world = await setup();
    assert.equal(await world.store.read(call), undefined);
  });

  Deno.test(`${name}: create() stores every digit, for everybody`, async () => {
    await using world = await setup();
    const made = await world.store.create(
      RECORD,
      { "example.org/a": "1", "example.org/b": null },
      call,
    );
    assert.deepEqual(made.record, RECORD);
    assert.deepEqual(made.annotations, { "example.org/a": "1" });
    assert.deepEqual(await world.store.read(call), made);
    assert.deepEqual(await world.other.read(call), made);
  });

  Deno.test(`${name}: create() refuses to replace a Lease`, async () => {
    await using world = await setup();
    await world.other.create(RECORD, {}, call);
    const mine = { ...RECORD, holder: "mine" };
    await assert.rejects(world.store.create(mine, {}, call), isError("conflict"));
    assert.equal((await world.store.read(call))?.record.holder, RECORD.holder);
  });

  Deno.test(`${name}: update() replaces the version that it names, and no other`, async () => {
    await using world = await setup();
    const first = await world.store.create(RECORD, {}, call);
    const next = { ...RECORD, renewTime: "2026-11-30T01:02:06.000001Z" };
    const second = await world.store.update(first.version, next, {}, call);
    assert.notEqual(second.version, first.version);
    assert.deepEqual(second.record, next);
    const seen = await world.other.read(call);
    assert.deepEqual(seen, second);
    const theirs = { ...RECORD, holder: "theirs" };
    await world.other.update(second.version, theirs, {}, call);
    await assert.rejects(
      world.store.update(second.version, RECORD, {}, call),
      isError("conflict"),
    );
    assert.equal((await world.store.read(call))?.record.holder, "theirs");
  });

  Deno.test(`${name}: update() refuses a version that it saw long ago`, async () => {
    await using world = await setup();
    const first = await world.store.create(RECORD, {}, call);
    await world.store.update(first.version, { ...RECORD, holder: "now" }, {}, call);
    await assert.rejects(world.store.update(first.version, RECORD, {}, call), isError("conflict"));
  });

  Deno.test(`${name}: update() of a Lease that is gone is a conflict, and makes none`, async () => {
    await using world = await setup();
    const first = await world.store.create(RECORD, {}, call);
    await world.delete();
    await assert.rejects(world.store.update(first.version, RECORD, {}, call), isError("conflict"));
    assert.equal(await world.store.read(call), undefined);
    await world.other.create(RECORD, {}, call);
    await assert.rejects(world.store.update(first.version, RECORD, {}, call), isError("conflict"));
  });

  Deno.test(`${name}: update() sets and removes annotations, and leaves others as they are`, async () => {
    await using world = await setup();
    const first = await world.store.create(RECORD, {
      "example.org/other": "x",
      "example.org/a": "1",
    }, call);
    const second = await world.store.update(
      first.version,
      RECORD,
      { "example.org/a": null, "example.org/b": "2" },
      call,
    );
    assert.deepEqual(second.annotations, { "example.org/other": "x", "example.org/b": "2" });
  });

  Deno.test(`${name}: update() can give the Lease back`, async () => {
    await using world = await setup();
    const first = await world.store.create(RECORD, {}, call);
    const free = { ...RECORD, holder: "", durationSeconds: 1 };
    await world.store.update(first.version, free, {}, call);
    assert.deepEqual((await world.other.read(call))?.record, free);
  });

  Deno.test(`${name}: watch() tells changes and the deletion, until aborted`, async () => {
    await using world = await setup();
    const stop = new AbortController();
    const holders: (string | undefined)[] = [];
    world.other.watch((lease) => void holders.push(lease?.record.holder), stop.signal);
    const heard = (holder: string | undefined) =>
      eventually(() => holders.length > 0 && holders.at(-1) === holder, {
        what: `word of ${holder}`,
      });
    const first = await world.store.create(RECORD, {}, call);
    await heard(RECORD.holder);
    await world.store.update(first.version, { ...RECORD, holder: "" }, {}, call);
    await heard("");
    await world.delete();
    await heard(undefined);
    stop.abort();
    const before = holders.length;
    await world.store.create(RECORD, {}, call);
    await world.store.read(call);
    assert.equal(holders.length, before);
  });

  Deno.test(`${name}: each method rejects with the reason of an aborted signal`, async () => {
    await using world = await setup();
    const stopped = { signal: AbortSignal.abort(new Error("stopped")) };
    await assert.rejects(world.store.read(stopped), /stopped/);
    await assert.rejects(world.store.create(RECORD, {}, stopped), /stopped/);
    const first = await world.store.create(RECORD, {}, call);
    await assert.rejects(world.store.update(first.version, RECORD, {}, stopped), /stopped/);
    assert.deepEqual(await world.store.read(call), first);
  });
}
