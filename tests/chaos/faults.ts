import { listProcesses, signalProcess } from "../../backends/process/proc.ts";
import { systemClock } from "../../lib/clock.ts";
import { FetchTaskResponseSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { fromBinary } from "../../proto/runtime.ts";
import { findExecutors, killExecutor } from "../faults/executors.ts";
import type { Faults } from "../fakes/forge/faults.ts";
import type { ProxiedCall } from "../support/hold_proxy.ts";
import { createRandom, type Random } from "./random.ts";
import type { Dose, Lane } from "./schedule.ts";
import type { World } from "./world.ts";

/** What a fault did, for the oracle; times are `performance.now()`. */
export interface Happened {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** A task that was on its way to the controller meanwhile may be lost for it. */
  readonly losesHandOuts: boolean;
  /** A controller that started meanwhile may have ended at once: see {@link Fault.endsStarts}. */
  readonly endsStarts: boolean;
  /** Assignments whose executor it has killed. */
  readonly killed: readonly string[];
  /** For people. */
  readonly note: string;
}

/** One way to interfere. `run` resolves when the world is whole again. */
export interface Fault {
  readonly name: string;
  readonly lanes: readonly Lane[];
  readonly losesHandOuts?: true;
  /** A controller that starts meanwhile ends at once, as one with a wrong registration must. */
  readonly endsStarts?: true;
  /** So many times as likely as others; 1 by default. */
  readonly weight?: number;
  run(world: World, dose: Dose): Promise<Done>;
}

/** What a fault did. */
export interface Done {
  readonly note: string;
  readonly killed?: readonly string[];
}

const ALL: readonly Lane[] = ["steady", "killed", "real", "pods"];
const LIGHT: readonly Lane[] = ["steady", "killed"];
/** A {@link Done} without victims. */
export function done(note: string): Done {
  return { note };
}

/** Waits. */
export function lasting(ms: number): Promise<void> {
  return systemClock.sleep(ms);
}

/** Chance of one fault. */
export function chance({ seed }: Dose): Random {
  return createRandom(seed);
}

/** For people. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Every fault there is. Later peers add theirs here. */
export const FAULTS: readonly Fault[] = [
  {
    name: "controller killed",
    lanes: ["killed", "real", "pods"],
    weight: 5,
    losesHandOuts: true,
    async run(world) {
      const before = performance.now();
      await world.replaceController();
      return done(`back in ${seconds(performance.now() - before)}`);
    },
  },
  {
    name: "controller stands still",
    lanes: ALL,
    losesHandOuts: true,
    async run(world, { ms }) {
      const pid = world.pid();
      if (pid === null) return done("there was none");
      await stopped([pid], ms);
      return done(seconds(ms));
    },
  },
  {
    name: "nats-server killed",
    lanes: ALL,
    async run(world) {
      const pids = await natsServers(world);
      for (const pid of pids) signalProcess(pid, "SIGKILL");
      return done(`${pids.length} processes`);
    },
  },
  {
    name: "nats-server stands still",
    lanes: ALL,
    async run(world, { ms }) {
      await stopped(await natsServers(world), ms);
      return done(seconds(ms));
    },
  },
  {
    name: "connections to NATS cut",
    lanes: LIGHT,
    run: ({ light }) => Promise.resolve(done(`${light?.natsProxy.cut() ?? 0} connections`)),
  },
  {
    name: "NATS out of reach",
    lanes: LIGHT,
    async run({ light }, { ms }) {
      if (light === null) return done("nothing");
      light.natsProxy.away = true;
      await lasting(ms);
      light.natsProxy.away = false;
      return done(seconds(ms));
    },
  },
  {
    name: "gates killed",
    lanes: ALL,
    weight: 2,
    run: (world, dose) => killSome(world, { ...dose, who: "gate" }),
  },
  {
    name: "runners killed",
    lanes: ALL,
    run: (world, dose) => killSome(world, { ...dose, who: "runner" }),
  },
  {
    name: "executors stand still",
    lanes: ["real"],
    async run({ place }, dose) {
      const { ms, count } = dose;
      const executors = some(await findExecutors(place.runtimeDir), count, chance(dose));
      await stopped(executors.map(({ leader }) => -leader), ms);
      return done(`${executors.length} for ${seconds(ms)}`);
    },
  },
  {
    name: "executor host out of order",
    lanes: LIGHT,
    async run({ light }, { ms }) {
      if (light === null) return done("nothing");
      light.host.faults.refusing = true;
      await lasting(ms);
      light.host.faults.refusing = false;
      return done(seconds(ms));
    },
  },
  {
    name: "answers about new executors lost",
    lanes: LIGHT,
    run({ light }, { count }) {
      if (light !== null) light.host.faults.loseCreates += count;
      return Promise.resolve(done(`${count} answers`));
    },
  },
  {
    name: "forge down",
    lanes: ALL,
    losesHandOuts: true,
    async run({ forge }, { ms }) {
      forge.proxy.down = true;
      await lasting(ms);
      forge.proxy.down = false;
      return done(seconds(ms));
    },
  },
  {
    name: "calls of the forge lost",
    lanes: ALL,
    losesHandOuts: true,
    async run({ forge }, dose) {
      const { ms, share } = dose;
      const random = chance(dose);
      let lost = 0;
      // Held until then, so that some run into their time-out first.
      using point = forge.proxy.hold(() => random.next() < share && ++lost > 0);
      await lasting(ms);
      point.drop();
      return done(`${lost} in ${seconds(ms)}`);
    },
  },
  {
    name: "reports to the forge late",
    lanes: ALL,
    async run({ forge }, dose) {
      const random = chance(dose);
      using _late = forge.proxy.hold((call) => !isHandOut(call) && random.next() < dose.share);
      await lasting(dose.ms);
      return done(seconds(dose.ms));
    },
  },
  switched("forge answers every second call with an error", "internalEverySecond"),
  { ...switched("forge knows no runner", "unauthenticated"), endsStarts: true },
  switched("forge answers with a web page", "html"),
  switched("version of the forge does not move", "versionFrozen"),
  counted("forge throttles", "throttled"),
  counted("forge hands out twice", "handOutTwice"),
  counted("forge cannot seal logs", "failLastRow"),
  counted("answers to final states lost", "loseFinalAnswer"),
  { ...counted("forge hands out and does not answer", "handOutAndHang"), losesHandOuts: true },
  {
    name: "user cancels",
    lanes: ALL,
    weight: 2,
    run({ forge }, dose) {
      const open = forge.fake.forge.jobs().filter(({ result }) => result === null);
      const chosen = some(open, dose.count, chance(dose));
      for (const { jobId } of chosen) forge.cancel(jobId);
      return Promise.resolve(done(`jobs ${chosen.map(({ jobId }) => jobId).join(", ")}`));
    },
  },
];

/** The faults of a lane of processes on this machine. */
export function faultsOf(lane: Lane): readonly Fault[] {
  return FAULTS.filter(({ lanes }) => lanes.includes(lane));
}

/** Names of faults, each as often as its weight: what a schedule picks from. */
export function weighedNames(faults: readonly Pick<Fault, "name" | "weight">[]): readonly string[] {
  return faults.flatMap(({ name, weight = 1 }) => Array.from({ length: weight }, () => name));
}

type Switch = { [K in keyof Faults]: Faults[K] extends boolean ? K : never }[keyof Faults];
type Counter = { [K in keyof Faults]: Faults[K] extends number ? K : never }[keyof Faults];

function switched(name: string, key: Switch): Fault {
  return {
    name,
    lanes: ALL,
    // What the forge does not even look at cannot have been handed out.
    async run({ forge }, { ms }) {
      forge.fake.faults[key] = true;
      await lasting(ms);
      forge.fake.faults[key] = false;
      return done(seconds(ms));
    },
  };
}

function counted(name: string, key: Counter): Fault {
  return {
    name,
    lanes: ALL,
    run({ forge }, { count }) {
      forge.fake.faults[key] += count;
      return Promise.resolve(done(`${count} times`));
    },
  };
}

/** SIGSTOP for that long; negative numbers are process groups. */
export async function stopped(pids: readonly number[], ms: number): Promise<void> {
  for (const pid of pids) signalProcess(pid, "SIGSTOP");
  try {
    await lasting(ms);
  } finally {
    for (const pid of pids) signalProcess(pid, "SIGCONT");
  }
}

async function natsServers({ place }: World): Promise<number[]> {
  const processes = await place.processes();
  return processes.filter(({ command }) => /^\S*nats-server /.test(command)).map(({ pid }) => pid);
}

async function killSome(
  world: World,
  dose: Dose & { readonly who: "gate" | "runner" },
): Promise<Done> {
  const { light, place, pods } = world;
  const random = chance(dose);
  if (pods !== null) return await pods.kill(dose.who, { count: dose.count, random });
  if (light !== null) {
    const before = light.host.kills.length;
    const victims = some(light.host.running(), dose.count, random);
    for (const name of victims) light.host.kill(name, dose.who);
    const killed = light.host.kills.slice(before);
    return {
      note: killed.map(({ assignment, phase }) => `${assignment} (${phase})`).join(", "),
      killed: killed.flatMap(({ assignment, phase }) => phase === "before" ? [] : [assignment]),
    };
  }
  const killed: string[] = [];
  for (const executor of some(await findExecutors(place.runtimeDir), dose.count, random)) {
    if (dose.who === "runner") {
      const runner = await runnerBelow(executor.gate);
      if (runner === undefined) continue;
      signalProcess(runner, "SIGKILL");
    } else if (random.next() < 0.5) signalProcess(executor.gate, "SIGKILL");
    else await killExecutor(executor);
    killed.push(`gitea-task-${executor.name.split("-").at(-1)}`);
  }
  return { note: killed.join(", "), killed };
}

/** The runner, if the gate has started it by now. */
async function runnerBelow(gate: number): Promise<number | undefined> {
  for (const { pid } of await listProcesses()) {
    const stat = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => "");
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    if (parent === gate) return pid;
  }
  return undefined;
}

/** So many of them, by chance. */
export function some<T>(items: readonly T[], count: number, random: Random): T[] {
  const left = [...items];
  const chosen: T[] = [];
  while (left.length > 0 && chosen.length < count) {
    chosen.push(...left.splice(random.between(0, left.length - 1), 1));
  }
  return chosen;
}

function isHandOut({ name, answer }: ProxiedCall): boolean {
  return name === "FetchTask" && answer?.status === 200 &&
    fromBinary(FetchTaskResponseSchema, answer.body).task !== undefined;
}
