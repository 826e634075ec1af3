import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import type { JobWorld } from "./job.ts";
import type { Guest, Platform } from "./platform.ts";
import { runEnd } from "./run_end.ts";

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

/**
 * Plays the job of a workflow, named by its file, until its sandbox is gone; rejects with logs when it
 * comes to another end.
 */
export async function playJob(
  { stage, platform, controller }: JobWorld,
  workflow: string,
): Promise<Played> {
  const { gitea, repository } = stage;
  const before = platform.guests().length;
  const since = performance.now();
  const run = await gitea.dispatch(repository, workflow);
  const job = await runEnd(stage, run, JOB_MS).catch(async (cause) => {
    const tail = await controller.process.tail(12);
    throw new Error(`${await told(platform)}\n${tail}`, { cause });
  });
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
