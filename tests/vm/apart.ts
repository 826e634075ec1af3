import assert from "node:assert/strict";
import { type BackendName, BACKENDS } from "../../controller/model/ids.ts";
import type {
  AssignmentDetailView,
  AssignmentView,
  BackendView,
  Page,
  SourceView,
  StatusView,
} from "../../controller/views.ts";
import { eventually } from "../support/eventually.ts";
import {
  compareEvents,
  dispatch,
  measure,
  quantile,
  type Sample,
  succeeded,
  WAITING,
} from "./apart_jobs.ts";
import { type Apart, type Side, startApart } from "./apart_stage.ts";
import type { Alone } from "./suites.ts";

/** How the part is played. */
export interface ApartPlan {
  readonly hangMs: number;
  /** The sides that hang, one after the other. */
  readonly hung: readonly BackendName[];
}

/** SPEC: within 10 % of a run without the hang. */
const RATIO = 1.1;
/** Half of them before the hang, half after it. */
const WITHOUT = 24;
/** So many in a hang of five minutes, as far as each leaves time for the next. */
const WITHIN = 40;
const LEAST = 20;
const WHOLE_HANG_MS = 300_000;
const WARM_UPS = 2;
/** A call that is not answered is given up after 10 or 15 s, and one may be under way at the time. */
const SHOWN_MS = 45_000;
const BACK_MS = 120_000;
const NAMES = { pod: "Pod", vm: "microVM" } as const;

/** What was seen of the side that hangs. */
interface Look {
  /** Since the beginning of the hang. */
  readonly atMs: number;
  readonly source: SourceView;
  readonly waiting: readonly AssignmentDetailView[];
}

/** One hang with what was measured on the other side. */
interface Hang {
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

/** Each side's jobs start as fast while the other side does not answer, and those that wait run later. */
export async function checkApart(alone: Alone, plan: ApartPlan): Promise<void> {
  if (Deno.uid() !== 0) throw new Error("Run the tests of both sides as root: they make cgroups");
  const started = performance.now();
  await using apart = await startApart(alone);
  alone.report.say(`both sides are up after ${seconds(performance.now() - started)}`);
  for (const name of plan.hung) {
    alone.signal.throwIfAborted();
    await checkHang(apart, apart.sides[name], plan.hangMs);
  }
}

async function checkHang(apart: Apart, hung: Side, hangMs: number): Promise<void> {
  const { report, platform } = apart;
  const measured = apart.sides[hung.backend === "pod" ? "vm" : "pod"];
  const [here, there] = [NAMES[measured.backend], NAMES[hung.backend]];
  const hangs = `the ${there} side hangs for ${seconds(hangMs)}`;
  const played: Hang[] = [];
  await report.attempt(`${here} jobs while ${hangs}`, async () => {
    played.push(await play(apart, { measured, hung, hangMs }));
  });
  const [hang] = played;
  if (hang === undefined) return;
  await report.check(`${here} jobs keep their start time while ${hangs}`, () => {
    const [without, within] = [hang.without, hang.within].map((list) =>
      list.map(({ startMs }) => startMs)
    );
    assert.ok(without !== undefined && within !== undefined);
    const ratio = quantile(within, 0.5) / quantile(without, 0.5);
    const figures = `without ${spread(without)}, within ${spread(within)}, ratio ${
      ratio.toFixed(3)
    }`;
    const least = Math.min(LEAST, Math.floor(LEAST * hangMs / WHOLE_HANG_MS));
    assert.ok(within.length >= least, `${within.length} jobs in the hang: ${figures}`);
    assert.ok(ratio <= RATIO, `${figures}\n${compareEvents(hang.without, hang.within)}`);
    return Promise.resolve(figures);
  });
  await report.check(`the API says that the ${there} side is away, and why its jobs wait`, () => {
    const shown = hang.looks.filter(({ atMs }) => atMs >= SHOWN_MS);
    assert.ok(shown.length > 0, `the hang was too short: it shows after ${seconds(SHOWN_MS)}`);
    for (const { atMs, source, waiting } of shown) {
      const what = `${seconds(atMs)} after it began: ${JSON.stringify({ source, waiting })}`;
      assert.equal(source.state, "down", what);
      assert.ok(source.lastError !== null, what);
      const codes = waiting.map(({ reason }) => reason?.code);
      assert.deepEqual(codes, Array(WAITING).fill("backend_unavailable"), what);
    }
    const last = shown.at(-1);
    const tries = last?.waiting.map(({ events }) =>
      events.filter(({ event }) =>
        event === "backend_retry"
      ).length
    ) ?? [];
    assert.ok(Math.min(...tries) >= 1, "each was tried again, and failed");
    return Promise.resolve(
      `${shown.length} looks, tries ${tries.join(", ")}; "${last?.waiting[0]?.reason?.detail}"`,
    );
  });
  await report.check(`a ${there} job that ran when it began ends as if nothing was`, () => {
    const late = hang.ranMs - hang.toldToRunMs;
    assert.ok(hang.ranMs < hangMs, `it ended ${seconds(hang.ranMs)} after the hang began`);
    return Promise.resolve(
      `success ${seconds(hang.ranMs)} after it began, ${seconds(late)} past its own time`,
    );
  });
  await report.check(`the ${WAITING} ${there} jobs that waited succeed when it is back`, () => {
    assert.equal(hang.backMs.length, WAITING);
    return Promise.resolve(`after ${hang.backMs.map(seconds).join(", ")}`);
  });
  await report.check("nothing is left on either side", async () => {
    for (const side of BACKENDS) assert.deepEqual(await apart.sides[side].left(), [], side);
    const { backends } = await apart.controller.get("/api/v1/status") as StatusView;
    for (const { name, used, waiting, unknown } of backends) {
      assert.deepEqual({ used, waiting, unknown }, { used: 0, waiting: 0, unknown: 0 }, name);
    }
    assert.deepEqual(platform.faults, []);
    return `no Pod, sandbox, entry or slot ${seconds(hang.goneMs)} after the last success`;
  });
}

/** Measures before, within and after a hang of the other side. */
async function play(
  apart: Apart,
  { measured, hung, hangMs }: {
    readonly measured: Side;
    readonly hung: Side;
    readonly hangMs: number;
  },
): Promise<Hang> {
  const everyMs = WHOLE_HANG_MS / WITHIN;
  const jobs = (count: number) =>
    series({ everyMs, going: (done) => done < count, one: () => measure(apart, measured) });
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
  hung.way.stall();
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
    });
    await pause(hangMs - hangsFor());
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
    ...{ without: [...before, ...after], within, looks, backMs, ranMs, toldToRunMs, goneMs },
  };
}

/** One after the other, each begun at the next stroke of a clock; without a stroke where one took long. */
async function series({ everyMs, going, one }: {
  readonly everyMs: number;
  going(done: number): boolean;
  one(): Promise<Sample>;
}): Promise<Sample[]> {
  const samples: Sample[] = [];
  while (going(samples.length)) {
    const next = performance.now() + everyMs;
    samples.push(await one());
    await pause(next - performance.now());
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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}

function spread(times: readonly number[]): string {
  const of = (share: number) => Math.round(quantile(times, share));
  return `p50 ${of(0.5)} ms, p95 ${of(0.95)} ms of ${times.length}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
