/**
 * Rounds of create, bind, mark and delete on a real opensandbox-server behind a proxy that spoils the
 * answers to creates, and that is killed in the midst of some. Not found by `deno task test`:
 * `deno test -A tests/contract/backend_vm_faults.ts`; `VM_ROUNDS` (300) and `VM_SEED`.
 */
import assert from "node:assert/strict";
import { createLifecycle } from "../../clients/opensandbox/lifecycle.ts";
import { type Backend, BackendError, type Executor } from "../../controller/backend.ts";
import { systemClock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { createRandom } from "../chaos/random.ts";
import { callsWithin } from "../support/calls.ts";
import { tellFigures } from "../support/figures.ts";
import { startPeers } from "../support/peers.ts";
import { signedSpec, vmBackend } from "../support/vm_backend_setup.ts";
import { type CreateFault, startVmFaultProxy } from "../support/vm_fault_proxy.ts";

const ROUNDS = Number(Deno.env.get("VM_ROUNDS") ?? 300);
const SEED = Number(Deno.env.get("VM_SEED") ?? 4242);
const CREATES_PER_SECOND = 2;
/** One more where a window of 10 s has both its ends. */
const MOST_IN_10_S = 10 * CREATES_PER_SECOND + 1;
const AT_ONCE = 8;
const FAULTS: readonly CreateFault[] = [
  "delay",
  "hang",
  "failed",
  "full",
  "timeout",
  "empty",
  "cut",
  "late",
];
const call = callsWithin(120_000);

/** As the controller's worker does it: find, create, and again until it is there; then to its end. */
async function round(backend: Backend, task: string): Promise<{ readonly tries: number }> {
  const spec = signedSpec(task);
  for (let tries = 1;; tries++) {
    assert.ok(tries < 300, `executor of task ${task} is not there after ${tries} tries`);
    const made = await once(backend, spec);
    if (made === undefined) {
      await systemClock.sleep(200);
      continue;
    }
    await until(() => backend.markTerminal(made, call));
    await until(() => backend.delete(made, call));
    if (await until(() => backend.find(spec.name, call)) === undefined) return { tries };
  }
}

async function once(
  backend: Backend,
  spec: Parameters<Backend["create"]>[0],
): Promise<Executor | undefined> {
  try {
    const found = await backend.find(spec.name, call) ?? await backend.create(spec, call);
    if (found.ended !== null) await backend.delete(found, call);
    if (found.identityTarget === null || found.ended !== null) return undefined;
    await backend.bindIdentity(found, spec.assignment, call);
    return found;
  } catch (error) {
    if (error instanceof BackendError) return undefined;
    throw error;
  }
}

/** Repeats what fails while the server is away. */
async function until<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1;; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BackendError) || tries > 200) throw error;
      await systemClock.sleep(100);
    }
  }
}

Deno.test({
  name: `${ROUNDS} rounds with spoilt answers and a server that is killed leave no sandbox`,
  sanitizeResources: false, // Connections of a proxy whose peer is killed.
  sanitizeOps: false,
  async fn() {
    await using peers = await startPeers({
      which: ["opensandbox"],
      env: { OS_POOL_MAX: "40", OS_POOL_WAIT: "2", OS_CREATE_WAIT: "6" },
    });
    const random = createRandom(SEED);
    const fault = (): CreateFault => random.next() < 0.7 ? "none" : random.pick(FAULTS);
    await using proxy = startVmFaultProxy(peers.opensandbox.url, fault);
    using api = createLifecycle({
      url: proxy.url,
      apiKey: new Secret(peers.opensandbox.apiKey),
      clock: systemClock,
      createTimeoutMs: 1_500,
    });
    let most = 0;
    const backend = vmBackend({
      ...api,
      async list(metadata, call) {
        const all = await api.list(metadata, call);
        most = Math.max(most, all.length);
        return all;
      },
    }, { createsPerSecond: CREATES_PER_SECOND, doubtMs: 300 });
    const killServer = async () => {
      const note = await Deno.readTextFile(`${peers.folder}/pids/opensandbox-server`);
      Deno.kill(Number(note.split(" ")[0]), "SIGKILL");
      await peers.script("opensandbox.sh", "start", "stub");
    };
    const started = performance.now();
    let next = 1;
    let tries = 0;
    let kills = 0;
    const stop = new AbortController();
    const listing = (async () => {
      while (!stop.signal.aborted) {
        await backend.list(call).then(() => backend.tidy?.(call)).catch(() => {});
        await systemClock.sleep(1_000, stop.signal).catch(() => {});
      }
    })();
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      while (next <= ROUNDS) {
        const task = next++;
        const killing = task % 100 === 50 ? killServer().then(() => kills++) : undefined;
        tries += (await round(backend, String(task))).tries;
        await killing;
      }
    }));
    stop.abort();
    await listing;
    await proxy.settled();
    // Those that came after their assignment had ended, which the controller knows as leftovers.
    await until(() => backend.list(call));
    await until(async () => await backend.tidy?.(call));
    const leftovers = await until(() => backend.list(call));
    for (const executor of leftovers) await until(() => backend.delete(executor, call));
    const left = await api.list({}, call);
    const busiest = Math.max(
      ...proxy.createdAt.map((from) =>
        proxy.createdAt.filter((at) => at >= from && at < from + 10_000).length
      ),
    );
    const seconds = Math.round((performance.now() - started) / 1000);
    tellFigures(
      `seed ${SEED}: ${ROUNDS} rounds in ${seconds} s, ${proxy.createdAt.length} creates`,
    );
    tellFigures(
      `faults: ${JSON.stringify(Object.fromEntries(proxy.met))}, ${kills} kills, ${tries} tries`,
    );
    tellFigures(
      `most sandboxes at once ${most}, leftovers ${leftovers.length}, left ${left.length}`,
    );
    tellFigures(`most creates in 10 s: ${busiest}`);
    assert.deepEqual(left, []);
    assert.equal(new Set(leftovers.map(({ name }) => name)).size, leftovers.length);
    // Each spoilt answer, and each create that a kill met, may leave one that turns up too late.
    const spoilt = tries - ROUNDS + kills * AT_ONCE;
    assert.ok(
      leftovers.length <= spoilt,
      `${leftovers.length} leftovers of ${spoilt} spoilt tries`,
    );
    assert.ok(busiest <= MOST_IN_10_S, `${busiest} creates in 10 s`);
  },
});
