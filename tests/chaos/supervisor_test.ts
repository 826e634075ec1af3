import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import type { Happened } from "./faults.ts";
import { judgeExit } from "./oracle.ts";
import { createSupervisor, type Exit } from "./supervisor.ts";

interface FakeProcess {
  readonly startedAt: number;
  readonly killed: boolean;
  exit(code: number): void;
}

function setup() {
  const clock = createFakeClock();
  const processes: FakeProcess[] = [];
  const said: string[] = [];
  /** What becomes of the next ones; those after them recover. */
  const fates: ("exits" | "hangs")[] = [];
  const supervisor = createSupervisor({
    clock,
    say: (line) => said.push(line.trim()),
    isReady: (url) => Promise.resolve(!url.endsWith("hangs")),
    start() {
      const number = processes.length + 1;
      const fate = fates.shift();
      const ended = Promise.withResolvers<number>();
      let killed = false;
      processes.push({
        startedAt: clock.monotonic(),
        get killed() {
          return killed;
        },
        exit: ended.resolve,
      });
      if (fate === "exits") ended.resolve(1);
      return Promise.resolve({
        pid: number,
        exited: ended.promise,
        url: () =>
          fate === "exits" ? Promise.reject(new Error("It ended")) : Promise.resolve(`${fate}`),
        text: () => Promise.resolve(`I am ${number}\n`),
        end() {
          ended.resolve(0);
          return ended.promise;
        },
        async [Symbol.asyncDispose]() {
          killed = true;
          ended.resolve(137);
          await ended.promise;
        },
      });
    },
  });
  return { clock, processes, said, fates, supervisor };
}

Deno.test("createSupervisor() starts one that ends by itself again after 1, 2, 4, 8 and 10 s", async () => {
  const { clock, processes, fates, supervisor, said } = setup();
  fates.push("exits", "exits", "exits", "exits", "exits", "exits");
  const up = supervisor.replace();
  await clock.advance(50_000);
  await up;
  assert.deepEqual(
    processes.map(({ startedAt }) => startedAt / 1_000),
    [0, 1, 3, 7, 15, 25, 35],
  );
  assert.equal(supervisor.pid, 7);
  const exits = supervisor.takeExits();
  assert.equal(exits.length, 6);
  assert.deepEqual(exits[1], {
    ...{ code: 1, from: 1_000, to: 1_000, ready: false },
    lastLines: ["I am 2"],
  });
  assert.deepEqual(supervisor.takeExits(), []);
  assert.equal(said[0], "the controller ended by itself with exit code 1: I am 1");
  await supervisor[Symbol.asyncDispose]();
});

Deno.test("createSupervisor() starts another one when one ends that had recovered", async () => {
  const { clock, processes, supervisor } = setup();
  await supervisor.replace();
  processes[0]?.exit(3);
  await clock.advance(1_000);
  assert.equal(supervisor.pid, 2);
  const [exit] = supervisor.takeExits();
  assert.deepEqual([exit?.code, exit?.ready], [3, true]);
  assert.equal(await supervisor.log(), "I am 1\nI am 2\n");
  await supervisor[Symbol.asyncDispose]();
  assert.deepEqual(supervisor.takeExits(), []);
});

Deno.test("createSupervisor() counts no exit that was asked for", async () => {
  const { clock, processes, supervisor } = setup();
  await supervisor.replace();
  await supervisor.replace();
  assert.deepEqual(processes.map(({ killed }) => killed), [true, false]);
  assert.equal(await supervisor.end(), 0);
  await clock.advance(60_000);
  assert.equal(processes.length, 2);
  assert.equal(supervisor.pid, null);
  assert.equal(await supervisor.end(), -1);
  await supervisor[Symbol.asyncDispose]();
  assert.deepEqual(supervisor.takeExits(), []);
});

Deno.test("createSupervisor() counts one that had ended by itself before it was killed", async () => {
  const { processes, supervisor } = setup();
  await supervisor.replace();
  processes[0]?.exit(1);
  await supervisor.replace();
  assert.equal(supervisor.takeExits().length, 1);
  await supervisor[Symbol.asyncDispose]();
});

Deno.test("createSupervisor() gives up when none recovers within a minute", async () => {
  const { clock, fates, supervisor } = setup();
  fates.push(...Array.from({ length: 20 }, () => "exits" as const));
  const up = assert.rejects(supervisor.replace(), /to have recovered: it ended 9 times/);
  await clock.advance(60_000);
  await up;
  await supervisor[Symbol.asyncDispose]();
});

Deno.test("createSupervisor() ends while it waits, and leaves nothing running", async () => {
  const { clock, processes, fates, supervisor } = setup();
  fates.push("exits");
  const up = assert.rejects(supervisor.replace(), /supervisor ends/);
  await clock.advance(500);
  await supervisor[Symbol.asyncDispose]();
  await up;
  await clock.advance(60_000);
  assert.equal(processes.length, 1);

  const other = setup();
  other.fates.push("hangs");
  const hanging = assert.rejects(other.supervisor.replace(), /supervisor ends/);
  await other.clock.advance(0);
  await other.supervisor[Symbol.asyncDispose]();
  await hanging;
  assert.deepEqual(other.processes.map(({ killed }) => killed), [true]);
  assert.deepEqual(other.supervisor.takeExits(), []);
});

Deno.test("judgeExit() excuses a start while the forge does not know the runner, and nothing else", () => {
  const exit: Exit = {
    ...{ code: 1, from: 100, to: 200, ready: false },
    lastLines: ["connected", "Cannot check the registration: unregistered runner: ..."],
  };
  const fault: Happened = {
    ...{ name: "forge knows no runner", from: 150, to: 300, note: "" },
    ...{ losesHandOuts: false, endsStarts: true, killed: [] },
  };
  assert.deepEqual(judgeExit(exit, [fault]), []);
  const wrong: [Exit, Happened[]][] = [
    [exit, []],
    [exit, [{ ...fault, endsStarts: false }]],
    [exit, [{ ...fault, from: 201 }]],
    [exit, [{ ...fault, from: 10, to: 99 }]],
    [{ ...exit, ready: true }, [fault]],
    [{ ...exit, code: 2 }, [fault]],
    [{ ...exit, lastLines: ["TypeError: x is undefined"] }, [fault]],
  ];
  for (const [bad, happened] of wrong) assert.equal(judgeExit(bad, happened).length, 1);
});
