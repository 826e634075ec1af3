import assert from "node:assert/strict";
import { type BackendName, BACKENDS } from "../../controller/model/ids.ts";
import type { StatusView } from "../../controller/views/views.ts";
import type { Alone } from "../support/contract_suites.ts";
import { quantile } from "../support/quantile.ts";
import { requireRoot } from "../support/suite_parts.ts";
import { type Hang, playHang, WHOLE_HANG_MS } from "./apart_hang.ts";
import { compareEvents, type Sample, WAITING } from "./apart_jobs.ts";
import { type Apart, type Side, startApart } from "./apart_stage.ts";

/** How the part is played. */
export interface ApartPlan {
  readonly hangMs: number;
  /** The sides that hang, one after the other. */
  readonly hung: readonly BackendName[];
}

/** Of the medians: within 10 % of the start time without the hang. */
const RATIO = 1.1;
/** Jobs that begin and end within a whole hang. */
const LEAST = 20;
/** A call that is not answered is given up after 10 or 15 s, and one may be under way at the time. */
const SHOWN_MS = 45_000;
const NAMES = { pod: "Pod", vm: "microVM" } as const;

/** Each side's jobs start as fast while the other side does not answer, and those that wait run later. */
export async function checkApart(alone: Alone, plan: ApartPlan): Promise<void> {
  requireRoot("the tests of both sides");
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
    played.push(await playHang(apart, { measured, hung, hangMs }));
  });
  const [hang] = played;
  if (hang === undefined) return;
  await report.check(`${here} jobs keep their start time while ${hangs}`, () => {
    const { without, within } = hang;
    const ratio = median(within) / median(without);
    const figures = `without ${spread(without)}, within ${spread(within)}, ratio ${
      ratio.toFixed(3)
    }`;
    const least = Math.min(LEAST, Math.floor(LEAST * hangMs / WHOLE_HANG_MS));
    assert.ok(within.length >= least, `${within.length} jobs in the hang: ${figures}`);
    assert.ok(ratio <= RATIO, `${figures}\n${compareEvents(without, within)}`);
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

function median(samples: readonly Sample[]): number {
  return quantile(samples.map(({ startMs }) => startMs), 0.5);
}

/** With the machine's load: where the two differ in it, they are not to be compared. */
function spread(samples: readonly Sample[]): string {
  const p95 = quantile(samples.map(({ startMs }) => startMs), 0.95);
  const load = quantile(samples.map(({ load }) => load), 0.5);
  return `p50 ${Math.round(median(samples))} ms, p95 ${Math.round(p95)} ms of ${samples.length} ` +
    `(load ${load.toFixed(1)})`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
