import assert from "node:assert/strict";
import { BACKENDS } from "../../controller/model/ids.ts";
import type {
  AssignmentDetailView,
  AssignmentView,
  BackendView,
  Page,
  SourceView,
  StatusView,
} from "../../controller/views/views.ts";
import { systemClock } from "../../lib/clock.ts";
import { eventually } from "../support/eventually.ts";
import { dispatch, measure, type Sample, succeeded, WAITING } from "./apart_jobs.ts";
import type { Apart, Side } from "./apart_stage.ts";

/** How long the hang is that is promised about. */
export const WHOLE_HANG_MS = 300_000;
/** Half of them before the hang, half after it. */
const WITHOUT = 24;
/** So many in a hang of five minutes, as far as each leaves time for the next. */
const WITHIN = 40;
const WARM_UPS = 2;
const BACK_MS = 120_000;

/** What was seen of the side that hangs. */
export interface Look {
  /** Since the beginning of the hang. */
  readonly atMs: number;
  readonly source: SourceView;
  readonly waiting: readonly AssignmentDetailView[];
}

/** One hang with what was measured on the other side. */
export interface Hang {
  readonly without: readonly Sample[];
  readonly within: readonly Sample[];
  readonly looks: readonly Look[];
  /** From the end of the hang until each that waited had succeeded, in order. */
  readonly backMs: readonly number[];
  /** From the beginning of the hang to the success of the job that ran on. */
  readonly ranMs: number;
  readonly toldToRunMs: number;
  /** From the success of the last one until nothing was left on either side. */
  readonly goneMs: number;
}

/** Measures before, within and after a hang of the other side. */
export async function playHang(
  apart: Apart,
  { measured, hung, hangMs }: {
    readonly measured: Side;
    readonly hung: Side;
    readonly hangMs: number;
  },
): Promise<Hang> {
  const everyMs = WHOLE_HANG_MS / WITHIN;
  const jobs = (count: number) =>
    series(
      { everyMs, going: (done) => done < count, one: () => measure(apart, measured) },
      apart.signal,
    );
  for (let index = 0; index < WARM_UPS; index++) {
    await measure(apart, measured);
    await measure(apart, hung);
  }
  const before = await jobs(WITHOUT / 2);

  const toldToRunMs = Math.ceil(hangMs / 3);
  const running = await dispatch(apart, hung, "runs", {
    seconds: String(Math.ceil(toldToRunMs / 1000)),
  });
  await eventually(async () => (await slotsOf(apart, hung))[0]?.state === "running", {
    what: `run ${running} to begin`,
    timeoutMs: 60_000,
    everyMs: 100,
  });
  hung.way.hang();
  const since = performance.now();
  const hangsFor = () => performance.now() - since;
  const ran = succeeded(apart, running, hangMs + BACK_MS).then(hangsFor);
  // It is looked at after the hang, whatever happens until then.
  ran.catch(() => {});
  const looks: Look[] = [];
  let within: Sample[];
  const waiting: number[] = [];
  try {
    for (let index = 0; index < WAITING; index++) {
      waiting.push(await dispatch(apart, hung, `waits-${index}`));
    }
    const runs = waiting.map(String);
    const ids = await eventually(async () => {
      const found = await idsOf(apart, hung, runs);
      return found.length === WAITING && found;
    }, { what: `${WAITING} jobs to wait`, timeoutMs: 30_000, everyMs: 100 });
    within = await series({
      everyMs,
      // Begun and ended within it.
      going: () => hangsFor() < hangMs - everyMs,
      async one() {
        const sample = await measure(apart, measured);
        looks.push(await lookAt(apart, hung, { ids, atMs: hangsFor() }));
        return sample;
      },
    }, apart.signal);
    await pause(hangMs - hangsFor(), apart.signal);
  } finally {
    hung.way.resume();
  }
  const back = performance.now();
  const backMs = await Promise.all(waiting.map(async (run) => {
    await succeeded(apart, run, BACK_MS);
    return performance.now() - back;
  }));
  const ranMs = await ran;
  const last = performance.now();
  await eventually(async () => {
    const left = await Promise.all(BACKENDS.map((name) => apart.sides[name].left()));
    const slots = await Promise.all(BACKENDS.map((name) => slotsOf(apart, apart.sides[name])));
    return [...left, ...slots].every((list) => list.length === 0);
  }, { what: "the end of all executors and slots", timeoutMs: BACK_MS, everyMs: 250 });
  const goneMs = performance.now() - last;
  const after = await jobs(WITHOUT / 2);
  backMs.sort((a, b) => a - b);
  return {
    without: [...before, ...after],
    within,
    looks,
    backMs,
    ranMs,
    toldToRunMs,
    goneMs,
  };
}

/** One after the other, each begun at the next stroke of a clock; without a stroke where one took long. */
async function series({ everyMs, going, one }: {
  readonly everyMs: number;
  going(done: number): boolean;
  one(): Promise<Sample>;
}, signal: AbortSignal): Promise<Sample[]> {
  const samples: Sample[] = [];
  while (going(samples.length)) {
    const next = performance.now() + everyMs;
    samples.push(await one());
    await pause(next - performance.now(), signal);
  }
  return samples;
}

async function lookAt(
  { controller }: Apart,
  hung: Side,
  { ids, atMs }: { readonly ids: readonly string[]; readonly atMs: number },
): Promise<Look> {
  const { sources } = await controller.get("/api/v1/status") as StatusView;
  const waiting = await Promise.all(
    ids.map((id) => controller.get(`/api/v1/assignments/${id}`)),
  ) as AssignmentDetailView[];
  const states = waiting.map(({ state }) => state);
  assert.ok(states.every((one) => one === "stored" || one === "admitted"), states.join(", "));
  return { atMs, source: sources[hung.source], waiting };
}

/** The assignments of these runs that have no executor yet. */
async function idsOf(
  { controller }: Apart,
  { backend }: Side,
  runs: readonly string[],
): Promise<string[]> {
  const lists = await Promise.all(
    ["admitted", "stored"].map((state) =>
      controller.get(`/api/v1/assignments?backend=${backend}&state=${state}`)
    ),
  ) as Page<AssignmentView>[];
  const waiting = lists.flatMap(({ items }) => items);
  return runs.flatMap((run) => waiting.find(({ runId }) => runId === run)?.id ?? []);
}

async function slotsOf({ controller }: Apart, { backend }: Side): Promise<BackendView["slots"]> {
  return (await controller.get(`/api/v1/backends/${backend}`) as BackendView).slots;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return systemClock.sleep(Math.max(0, ms), signal);
}
