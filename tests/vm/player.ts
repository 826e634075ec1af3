import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import type { VmController } from "./controller.ts";
import type { Guest, Platform } from "./platform.ts";
import type { Stage } from "./stage.ts";

/** One job that succeeded; times in milliseconds. */
export interface Played {
  readonly log: string;
  /** The only one that it had. */
  readonly guest: Guest;
  /** From the dispatch to its success at Gitea. */
  readonly jobMs: number;
  /** From its success until its sandbox was gone. */
  readonly goneMs: number;
}

const JOB_MS = 120_000;
const GONE_MS = 30_000;

/** Plays the job of a workflow until its sandbox is gone; rejects with logs when it comes to another end. */
export async function playJob(
  { gitea, repository }: Stage,
  { platform, controller, workflow }: {
    readonly platform: Platform;
    readonly controller: VmController;
    /** Name of its file. */
    readonly workflow: string;
  },
): Promise<Played> {
  const before = platform.guests().length;
  const since = performance.now();
  const run = await gitea.dispatch(repository, workflow);
  const { jobs: [job] } = await eventually(async () => {
    const view = await gitea.run(repository, run);
    return view.done && view;
  }, { what: `the end of run ${run}`, timeoutMs: JOB_MS, everyMs: 150 }).catch(async (cause) => {
    const tail = await controller.process.tail(12);
    throw new Error(`${await told(platform)}\n${tail}`, { cause });
  });
  assert.ok(job !== undefined, `run ${run} has no job`);
  const endedAt = performance.now();
  const log = await gitea.log(repository, job.id);
  assert.equal(job.status, "success", `${log}\n${await told(platform)}`);
  const made = platform.guests().slice(before);
  assert.equal(made.length, 1, "sandboxes of the job");
  const [guest] = made;
  assert.ok(guest !== undefined);
  const goneAt = await eventually(() => guest.goneAt ?? undefined, {
    what: `the end of sandbox "${guest.name}"`,
    timeoutMs: GONE_MS,
  });
  return { log, guest, jobMs: endedAt - since, goneMs: goneAt - endedAt };
}

async function told(platform: Platform): Promise<string> {
  const last = platform.guests().at(-1);
  const guest = last === undefined
    ? "there was no sandbox"
    : await Deno.readTextFile(last.logFile).catch(() => "its program was not started");
  return [
    `guest: ${guest.trimEnd().split("\n").slice(-12).join("\n")}`,
    `platform: ${platform.faults.join("\n") || "no fault"}`,
  ].join("\n");
}
