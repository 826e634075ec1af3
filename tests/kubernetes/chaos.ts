import { onAbort } from "../../lib/abortable.ts";
import { openDiary } from "../chaos/diary.ts";
import { faultsOf } from "../chaos/faults.ts";
import { type Interrupted, playLane, roundsOf, sumsOf } from "../chaos/play_all.ts";
import { POD_FAULTS } from "./chaos_faults.ts";
import { openPodWorld } from "./chaos_world.ts";
import type { Stage } from "./stage.ts";

/** What is played of the chaos. */
export interface ChaosPlan {
  readonly jobs: number;
  /** What comes is a function of it. */
  readonly seed: number;
  /** Folder of a diary, which may hold an earlier part of the run; null = one of its own. */
  readonly resume: string | null;
  /** One round alone. */
  readonly round: number | null;
}

/** Short jobs in Pods while random faults come down on the cluster and everything else. */
export async function checkChaos(stage: Stage): Promise<void> {
  const { report, chaos } = stage;
  const folder = chaos.resume ?? await Deno.makeTempDir({ prefix: "gdr-chaos-diary-" });
  const diary = await openDiary(folder, { seed: chaos.seed, jobs: chaos.jobs });
  report.say(`chaos: seed ${diary.plan.seed}, ${diary.plan.jobs} jobs, diary in ${folder}`);
  const failedBefore = report.failed;
  const interrupted: Interrupted = new Set();
  // Nothing may go on running; what was played to its end is in the diary.
  const stopped = Promise.withResolvers<never>();
  const stop = () => {
    Promise.all([...interrupted].map((close) => close())).finally(() =>
      stopped.reject(stage.signal.reason)
    ).catch((error) => report.say(`close the chaos: ${error}`));
  };
  using _stopping = onAbort(stage.signal, stop);
  const playing = playLane(diary, {
    report,
    until: Infinity,
    interrupted,
    lane: "pods",
    numbers: chaos.round === null ? roundsOf("pods", diary.plan.jobs) : [chaos.round],
    faults: [...faultsOf("pods"), ...POD_FAULTS],
    open: () => openPodWorld(stage),
  });
  await Promise.race([playing, stopped.promise]);
  report.say(`chaos: ${sumsOf(diary)}`);
  if (chaos.resume === null && report.failed === failedBefore) {
    await Deno.remove(folder, { recursive: true });
  }
}
