import type { Result } from "../../controller/model/reason.ts";
import type { HoldProxy } from "../support/hold_proxy.ts";

/** What a job of these tests does. */
export interface JobPlan {
  /** Rows that it prints before and after it is held. */
  readonly rows?: number;
  /** It waits in its second step until {@link OutsideJob.letGo}. */
  readonly held?: boolean;
  /** The first step's shell text, in place of the usual. */
  readonly script?: string;
}

/** A job with its files outside of everything under test. */
export interface OutsideJob {
  /** As the forge knows it. */
  readonly id: number;
  readonly run: number;
  readonly rows: number;
  /** Every line that it wrote: `begin` when it began, `end` when it ended. */
  lines(): Promise<readonly string[]>;
  /** Lets a held one go on. */
  letGo(): Promise<void>;
}

/** The forge as these tests ask it, past every proxy. */
export interface Side {
  readonly kind: "forge" | "gitea";
  /** Between the controller and the forge. */
  readonly proxy: HoldProxy;
  readonly uuid: string;
  readonly token: string;
  start(plan?: JobPlan): Promise<OutsideJob>;
  /** Null while it has not ended. */
  result(job: OutsideJob): Promise<Result | null>;
  /** Content of its log's rows, without times. */
  rows(job: OutsideJob): Promise<readonly string[]>;
  /** Steps that have no result. */
  openSteps(job: OutsideJob): Promise<number>;
  /** What the user's button does. */
  cancel(job: OutsideJob): Promise<void>;
  /** Lets the forge's own time-out for silent tasks pass, if that can be hurried. */
  passSilence(): void;
}

/** Where jobs of one world write; every user may. */
export interface Outside {
  /** Files of a new job. */
  open(plan: JobPlan): Promise<{ readonly file: string } & Omit<OutsideJob, "id" | "run">>;
}

/** Makes an {@link Outside} in a new folder below `parent`. */
export async function openOutside(parent: string): Promise<Outside> {
  const folder = `${parent}/outside`;
  await Deno.mkdir(folder);
  await Deno.chmod(folder, 0o755);
  let count = 0;
  return {
    async open(plan) {
      const file = `${folder}/job-${++count}`;
      const gate = `${file}.held`;
      await Deno.writeTextFile(file, "");
      await Deno.chmod(file, 0o666);
      if (plan.held) await Deno.writeTextFile(gate, "");
      return {
        file,
        rows: plan.rows ?? DEFAULT_ROWS,
        lines: async () =>
          (await Deno.readTextFile(file)).split("\n").filter((line) => line !== ""),
        letGo: () => Deno.remove(gate),
      };
    },
  };
}

const DEFAULT_ROWS = 120;

/** Shell text of the three steps: begin with half of the rows, wait while held, the rest and the end. */
export const STEPS = [
  'echo begin >>"$FILE"; for i in $(seq 1 $((ROWS / 2))); do echo "row $i"; done',
  'while [ -e "$FILE.held" ]; do sleep 0.1; done',
  'for i in $(seq $((ROWS / 2 + 1)) $ROWS); do echo "row $i"; done; echo end >>"$FILE"',
] as const;
