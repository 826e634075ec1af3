import assert from "node:assert/strict";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { natsEnvironment, startNats } from "../support/nats.ts";
import { serveForge } from "../support/served_forge.ts";

const [A, B] = ["old-key-".repeat(5), "new-key-".repeat(5)];

interface Assignment {
  readonly id: string;
  readonly job: string;
  readonly state: string;
  readonly repository: string;
  readonly streamSequence: number | null;
  readonly reason: { readonly code: string; readonly detail: string } | null;
}

interface Executor {
  readonly assignmentId: string;
  readonly recovered: { readonly proof: string } | null;
  readonly ownership: string;
}

/** Servers that outlive controllers with different keys, and jobs that end when they are told to. */
async function setup() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const forge = stack.use(serveForge());
  const place = stack.use(await createControllerPlace());
  const folder = await Deno.makeTempDir({ prefix: "gdr-rotation-" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  await Deno.chmod(folder, 0o755);
  const owned = stack.move();
  return {
    forge,
    start: (keys: string) =>
      startController({
        stateDir: place.stateDir,
        env: {
          ...forge.env,
          PROFILE: "embedded",
          ...natsEnvironment(nats),
          CAPABILITY_KEY: keys,
          POD_CAPACITY: "1",
          VM_CAPACITY: "0",
          LOG_FORMAT: "json",
        },
      }),
    dispatch(job: string) {
      const script = `while ! test -e "${folder}/${job}"; do sleep 0.1; done; echo ${job} is done`;
      forge.dispatch(job, script);
    },
    async release(...jobs: string[]) {
      for (const job of jobs) await Deno.writeTextFile(`${folder}/${job}`, "");
    },
    /** The job ended well at the forge, with its whole log. */
    async succeeds(job: string) {
      await eventually(() => forge.job(job)?.result === "success", {
        what: `"${job}" to succeed`,
        timeoutMs: 30_000,
        everyMs: 50,
      }).catch((error) => {
        throw new Error(`${error}: ${forge.job(job)?.result}: ${forge.rows(job).join("\n")}`);
      });
      assert.equal(forge.rows(job).filter((row) => row.trim() === `${job} is done`).length, 1);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function assignment(controller: ControllerProcess, job: string) {
  const { items } = await controller.get<{ items: Assignment[] }>("/api/v1/assignments?limit=50");
  return items.find((each) => each.job === job);
}

function until(
  controller: ControllerProcess,
  job: string,
  holds: (job: Assignment) => boolean,
): Promise<Assignment> {
  return eventually(async () => {
    const found = await assignment(controller, job);
    return found !== undefined && holds(found) && found;
  }, { what: `"${job}" to come so far`, timeoutMs: 30_000, everyMs: 50 });
}

const stored = ({ streamSequence, state }: Assignment) =>
  streamSequence !== null && state === "stored";
const running = ({ state }: Assignment) => state === "running";

Deno.test("main goes on with stored jobs and live executors when CAPABILITY_KEY is rotated", async () => {
  await using world = await setup();
  {
    await using old = await world.start(A);
    for (const job of ["one", "two", "three"]) world.dispatch(job);
    await until(old, "one", running);
    await until(old, "two", stored);
    await until(old, "three", stored);
  }
  {
    await using rotated = await world.start(`${B},${A}`);
    const one = await until(rotated, "one", running);
    // Until it leads and has recovered, its pages know the job by its events alone.
    const executor = await eventually(async () => {
      const { items } = await rotated.get<{ items: Executor[] }>("/api/v1/executors?limit=50");
      return items.find(({ assignmentId }) => assignmentId === one.id);
    }, { what: "the executor to be recovered", timeoutMs: 30_000, everyMs: 50 });
    assert.deepEqual([executor.ownership, executor.recovered?.proof], ["ours", "record"]);
    // Its gate has a capability of the old key, and the next job was sealed with it.
    await world.release("one");
    await world.succeeds("one");
    await until(rotated, "two", running);
    world.dispatch("four");
    await until(rotated, "four", stored);
  }
  {
    // The old key was taken away too early: "three" is sealed with it, "two" and "four" are not in need.
    await using without = await world.start(B);
    await world.release("two", "four");
    await world.succeeds("two");
    const three = await until(without, "three", ({ state }) => state === "parked");
    await world.succeeds("four");
    assert.equal(three.reason?.code, "unreadable");
    assert.equal(three.repository, "sample/outside");
    assert.notEqual(three.streamSequence, null);
    assert.equal(world.forge.job("three")?.result, null);
    assert.equal(await without.end("SIGTERM"), 0, await without.text());
    assert.equal(world.forge.job("three")?.result, null);
  }
  await using again = await world.start(`${B},${A}`);
  await world.release("three");
  await world.succeeds("three");
  for (const job of ["one", "two", "three", "four"]) {
    await eventually(
      async () => ["cleaned", undefined].includes((await assignment(again, job))?.state),
      {
        what: `"${job}" to be cleaned`,
        timeoutMs: 15_000,
      },
    );
  }
  assert.equal(await again.end("SIGTERM"), 0, await again.text());
});
