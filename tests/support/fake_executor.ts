import type { Executor } from "../../controller/backend.ts";
import { parseAssignmentId } from "../../controller/model/ids.ts";
import type { Result } from "../../controller/model/reason.ts";
import { toWireResult } from "../../controller/settle.ts";
import type { Clock } from "../../lib/clock.ts";
import { create } from "../../proto/runtime.ts";
import {
  LogRowSchema,
  Result as WireResult,
  StepStateSchema,
  TaskStateSchema,
  UpdateLogRequestSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import type { FakeBackend } from "../fakes/backend.ts";
import type { Caller, FakeFacade, Told } from "./fake_facade.ts";

/** How the program in an executor behaves. */
export type Fate =
  /** Claims, runs, reports, says goodbye, ends. */
  | "well"
  /** Ends before it asks for its job. */
  | "ends_before_claim"
  /** Lives and never asks. */
  | "never_claims"
  /** Ends when it has been handed its task, before any report. */
  | "dies_holding"
  /** Ends in the middle of its job, without a word. */
  | "dies_running"
  /** Its object disappears in the middle of its job. */
  | "vanishes_running"
  /** Runs, cannot report the end, and says so. */
  | "gives_up"
  /** Reports its end once, whatever the answer, and ends without a word. */
  | "dies_reporting"
  /** Reports its end and ends, but says no goodbye. */
  | "no_goodbye"
  /** Reports its end and goes on living. */
  | "lingers";

/** Every {@link Fate}. */
export const FATES: readonly Fate[] = [
  "well",
  "ends_before_claim",
  "never_claims",
  "dies_holding",
  "dies_running",
  "vanishes_running",
  "gives_up",
  "dies_reporting",
  "no_goodbye",
  "lingers",
];

/** A program's behaviour. */
export interface Plan {
  readonly fate: Fate;
  readonly result: Result;
  readonly runMs: number;
  /** It reports on its way, and ends its job as cancelled when the answer says so. */
  readonly obeys?: boolean;
  /** It reports on its way until the answer says so, and then says nothing more. */
  readonly deaf?: boolean;
  /** It reports on its way, and goes on whatever it is told. */
  readonly reports?: boolean;
  /** Its gate is of a release that does not say where the log begins. */
  readonly old?: boolean;
}

/** What a program sees of the world. */
export interface ProgramDeps {
  readonly executor: Executor;
  readonly task: string;
  readonly plan: Plan;
  readonly backend: FakeBackend;
  readonly clock: Clock;
  facade(): FakeFacade;
  /** A gate was handed the task. */
  handed(gate: string): void;
  /** The job's first step begins. */
  began(): void;
}

const POLL_MS = 500;
const BEAT_MS = 10_000;

/** Gate and runner in one, until the program ends or is killed. */
export async function runProgram(deps: ProgramDeps, signal: AbortSignal): Promise<void> {
  const { executor, plan, backend, clock } = deps;
  const { name } = executor;
  let caller: Caller | undefined;
  let logOffset: number | undefined;
  /** Goes on while a report is not taken, as the real one does. */
  const beat = () => {
    if (caller === undefined || logOffset === undefined) return;
    const said = { holdsTask: true, ...plan.old === true ? {} : { logOffset } };
    deps.facade().heartbeat(caller, said);
  };
  const end = (exitCode: number) => {
    if (backend.executors.get(name)?.uid === executor.uid) backend.end(name, { exitCode });
  };
  /** Asks until the facade is there; undefined when it refuses. */
  const ask = async <T>(
    call: () => Promise<Told<T>>,
  ): Promise<{ readonly value: T } | undefined> => {
    for (let tries = 1;; tries++) {
      const told = await call();
      signal.throwIfAborted();
      if (told.kind === "done") return { value: told.value };
      if (told.kind === "refused") return undefined;
      await clock.sleep(POLL_MS, signal);
      if (tries % (BEAT_MS / POLL_MS) === 0) beat();
    }
  };

  if (plan.fate === "ends_before_claim") {
    await clock.sleep(POLL_MS, signal);
    return end(1);
  }
  if (plan.fate === "never_claims") return;
  let spiffeId = backend.bound.get(name);
  while (spiffeId === undefined) {
    await clock.sleep(POLL_MS, signal);
    spiffeId = backend.bound.get(name);
  }
  const id = parseAssignmentId(`gitea-task-${deps.task}`);
  if (id === undefined) throw new Error(`Run program: "${deps.task}" is no task`);
  const own: Caller = caller = { id, spiffeId, gate: `gate-${executor.uid}` };
  while (logOffset === undefined) {
    const told = await ask(() => deps.facade().fetchTask(own, signal));
    if (told === undefined) return end(1);
    if (told.value !== null) logOffset = told.value.logOffset;
    else await clock.sleep(POLL_MS, signal);
  }
  deps.handed(own.gate);
  if (plan.fate === "dies_holding") return end(137);
  deps.began();

  const state = (result: Result | null) =>
    create(TaskStateSchema, {
      id: BigInt(deps.task),
      result: toWireResult(result),
      steps: [0n, 1n].map((step) =>
        create(StepStateSchema, { id: step, result: toWireResult(result) })
      ),
    });
  const report = (result: Result | null) =>
    ask(() =>
      deps.facade().report(
        own,
        (relay) => relay.updateTask({ state: state(result), outputs: {} }, signal),
      )
    );
  const row = create(UpdateLogRequestSchema, {
    taskId: BigInt(deps.task),
    index: 0n,
    rows: [create(LogRowSchema, { content: `row of ${own.gate}` })],
  });
  if (await report(null) === undefined) return end(1);
  await ask(() => deps.facade().report(own, (relay) => relay.updateLog(row, signal)));
  let { result } = plan;
  let stuck = false;
  for (let left = plan.runMs; left > 0; left -= BEAT_MS) {
    await clock.sleep(Math.min(left, BEAT_MS), signal);
    beat();
    if (stuck) continue;
    if (plan.reports === true) await report(null);
    if (plan.obeys !== true && plan.deaf !== true) continue;
    const told = await report(null);
    if (told?.value.state?.result !== WireResult.CANCELLED) continue;
    stuck = plan.deaf === true;
    if (stuck) continue;
    result = "cancelled";
    break;
  }
  if (plan.fate === "dies_running") return end(137);
  if (plan.fate === "vanishes_running") return backend.vanish(name);
  if (plan.fate === "gives_up") {
    deps.facade().exit(own, false);
    return end(1);
  }
  if (plan.fate === "dies_reporting") {
    await deps.facade().report(
      own,
      (relay) => relay.updateTask({ state: state(result), outputs: {} }, signal),
    );
    return end(137);
  }
  const delivered = await report(result) !== undefined;
  if (plan.fate === "lingers") return;
  if (plan.fate !== "no_goodbye") deps.facade().exit(own, delivered);
  end(delivered ? 0 : 1);
}
