import type { Report } from "../e2e/report.ts";
import type { FaultCase } from "./case.ts";
import type { Side } from "./side.ts";
import type { World } from "./world.ts";

/** How cases are played. */
export interface LaneOptions<S extends Side> {
  readonly report: Report;
  /** So many worlds at a time. */
  readonly lanes: number;
  /** Where the logs of a failed case go. */
  readonly logFolder: string;
  open(): Promise<World<S>>;
}

/**
 * Plays every case, each lane one after the other in a world of its own. A world serves until a case
 * fails in it: what that left must not fail the next one.
 */
export async function playLanes<S extends Side>(
  cases: readonly FaultCase<S>[],
  options: LaneOptions<S>,
): Promise<void> {
  const waiting = [...cases];
  const lane = async () => {
    let world: World<S> | undefined;
    try {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { name, run } = next;
        const good = await options.report.check(name, async () => {
          world ??= await options.open();
          return await run(world);
        });
        if (good || world === undefined) continue;
        await Deno.writeTextFile(`${options.logFolder}/${fileName(name)}`, await world.log());
        await world[Symbol.asyncDispose]();
        world = undefined;
      }
    } finally {
      await world?.[Symbol.asyncDispose]();
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.lanes, cases.length) }, lane));
}

function fileName(name: string): string {
  return `${name.replaceAll(/[^\w-]+/g, "-")}.log`;
}
