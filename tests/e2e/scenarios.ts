import { differences, type Stand } from "./check_run.ts";
import { type Scenario, scenarios } from "./expectations.ts";
import type { Grounds } from "./grounds.ts";
import type { Report } from "./report.ts";
import { awaitEnd, type StartedRun, startRun } from "./start_run.ts";

/** Who runs the jobs of Gitea meanwhile. */
export interface JobRunner extends AsyncDisposable {
  readonly name: string;
  /** Whether jobs have an identity and the product's rules hold. */
  readonly product: boolean;
  /** Files with what it printed, for a failure. */
  readonly logFiles: readonly string[];
}

/** A scenario that has been started, and what became of it. */
export interface PlayedScenario {
  readonly scenario: Scenario;
  readonly started: StartedRun;
}

/**
 * Starts every run of the table at once, waits for each and reports each as one check. Resolves to
 * the runs that could be started.
 */
export async function playScenarios(
  grounds: Grounds,
  runner: JobRunner,
  options: {
    readonly report: Report;
    readonly timeoutMs: number;
    /** Only those whose name has this in it; all without. */
    readonly only?: string;
    /** Other runs than those of the big table. */
    readonly table?: readonly Scenario[];
  },
): Promise<PlayedScenario[]> {
  const { report, timeoutMs } = options;
  const played: PlayedScenario[] = [];
  const chosen = (options.table ?? scenarios).filter((one) =>
    one.name.includes(options.only ?? "")
  );
  for (const scenario of chosen) {
    await report.attempt(`start of "${scenario.name}"`, async () => {
      played.push({ scenario, started: await startRun(grounds, scenario) });
    });
  }
  // Last the one that nobody takes: by then every other has shown that jobs are being taken.
  const [others, last] = [
    played.filter((one) => one.scenario.steering !== "cancel_waiting"),
    played.filter((one) => one.scenario.steering === "cancel_waiting"),
  ];
  const check = ({ scenario, started }: PlayedScenario) =>
    report.check(`run: ${scenario.name}`, async () => {
      const view = await awaitEnd(grounds, scenario, { started, timeoutMs });
      const found = await differences(grounds.owner, scenario, {
        started,
        view,
        stand: standOf(grounds, runner, scenario),
      });
      if (found.length > 0) throw new Error(found.join("\n"));
      const approved = started.approved ? ", approved by a maintainer" : "";
      return `${view.status}, ${count(view.jobs.length, "job")}${approved}`;
    });
  await Promise.all(others.map(check));
  for (const one of last) await check(one);
  return played;
}

function standOf(grounds: Grounds, runner: JobRunner, scenario: Scenario): Stand {
  return {
    rootUrl: grounds.peers.gitea.rootUrl,
    refuses: runner.product,
    spiffeId: (key) => runner.product ? scenario.identity.replaceAll("{job}", key) : "none",
  };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
