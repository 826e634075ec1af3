import type { HoldPoint } from "../support/hold_proxy_point.ts";
import type { ProxiedCall } from "../support/hold_proxy.ts";
import type { ProxiedMessage } from "../support/nats_proxy.ts";
import { eventually } from "../support/eventually.ts";
import { signalProcess } from "../../backends/process/proc.ts";
import {
  FetchTaskResponseSchema,
  UpdateLogRequestSchema,
  UpdateTaskRequestSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { fromBinary } from "../../proto/runtime.ts";
import { theExecutor } from "./executors.ts";
import type { OutsideJob } from "./side.ts";
import type { World } from "./world.ts";

/** A moment in the life of a job, held open from outside. */
export interface HeldMoment extends Disposable {
  /** Resolves when the job is there. */
  reached(job: OutsideJob): Promise<unknown>;
  /** Lets what is held go on its way, once the victim is dead. */
  goOn(): void;
  /** Loses what is held with the victim whose word it was. */
  lose(): void;
}

/** One such moment; it is armed before the job starts. */
export interface Point {
  readonly name: string;
  /** Whose words are held: to the forge, or to NATS; none where only the job waits. */
  readonly way: "forge" | "nats" | "none";
  /** There is an executor by then. */
  readonly executor: boolean;
  /** The job is to wait in its second step. */
  readonly held: boolean;
  arm(world: World): HeldMoment;
}

/** The points of one job's life, in their order. */
export const POINTS: readonly Point[] = [
  onForge("FetchTask's answer is on the wire", false, isHandOut),
  onNats("the publish has not left", false, (m) => m.way === "request" && isPublish(m)),
  onNats("the publish is not confirmed", false, (m) => m.way === "answer" && isPublish(m)),
  onNats("the task is stored and not delivered", false, (m) => m.way === "delivery"),
  onNats(
    "the executor is created, its UID not recorded",
    true,
    (m) => m.way === "request" && recordOf(m)?.uid != null && recordOf(m)?.claimedBy == null,
  ),
  onNats(
    "the UID is recorded",
    true,
    (m) => m.way === "answer" && recordOf(m)?.uid != null && recordOf(m)?.claimedBy == null,
  ),
  onForge("the identity is bound, the claim is being made", true, isClaimLook),
  onNats(
    "the claim is recorded and not answered",
    true,
    (m) => m.way === "answer" && recordOf(m)?.claimedBy != null && recordOf(m)?.terminal == null,
  ),
  onNats(
    "the claim is answered and not acknowledged",
    true,
    (m) => m.way === "request" && m.subject.startsWith("$JS.ACK.CI_RUNNER.") && m.text === "+ACK",
  ),
  {
    name: "the job runs",
    way: "none",
    executor: true,
    held: true,
    arm: () => ({
      reached: (job) =>
        eventually(async () => (await job.lines()).includes("begin"), {
          what: "the job to begin",
          timeoutMs: REACH_MS,
        }),
      goOn() {},
      lose() {},
      [Symbol.dispose]() {},
    }),
  },
  {
    name: "the final state is accepted and not marked",
    way: "nats",
    executor: true,
    held: false,
    arm: acceptedNotMarked,
  },
  {
    name: "the executor is marked and not deleted",
    way: "forge",
    executor: true,
    held: false,
    arm: markedNotDeleted,
  },
];

/** Only whoever keeps the runner's word still knows it, if the executor is lost as well. */
export const SEALED_NOT_ENDED: Point = onForge(
  "the log is sealed and the final state is on its way",
  true,
  (call) => isFinalState(call) && call.answer === null,
);

const REACH_MS = 30_000;

/** Rejects when the point is not reached in time. */
export async function within<T>(what: string, promise: Promise<T>): Promise<T> {
  const limit = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => limit.reject(new Error(`Wait until ${what}: not within ${REACH_MS / 1000} s`)),
    REACH_MS,
  );
  try {
    return await Promise.race([promise, limit.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function onForge(name: string, executor: boolean, match: (call: ProxiedCall) => boolean): Point {
  const arm = ({ side }: World) => held(name, side.proxy.hold(match));
  return { name, way: "forge", executor, held: false, arm };
}

function onNats(name: string, executor: boolean, match: (m: ProxiedMessage) => boolean): Point {
  const arm = ({ natsProxy }: World) => held(name, natsProxy.hold(match));
  return { name, way: "nats", executor, held: false, arm };
}

function held<T>(name: string, point: HoldPoint<T>): HeldMoment {
  return {
    reached: () => within(name, point.reached),
    goOn: () => point.release(),
    lose: () => point.drop(),
    [Symbol.dispose]: () => point.release(),
  };
}

/** The gate is stopped while the answer to its final state is on the way: it cannot end by itself. */
function stopGateAtItsEnd({ side, place }: World) {
  const final = side.proxy.hold(isFinalAnswer);
  let stopped = 0;
  const wake = () => {
    if (stopped > 0) signalProcess(stopped, "SIGCONT");
    stopped = 0;
  };
  return {
    /** Resolves to the folder of its executor when Gitea's answer is on its way again. */
    async reached(): Promise<string> {
      await within("the final state is accepted", final.reached);
      const { gate, folder } = await theExecutor(place.runtimeDir);
      stopped = gate;
      signalProcess(gate, "SIGSTOP");
      final.release();
      return folder;
    },
    wake,
    [Symbol.dispose]() {
      final.release();
      wake();
    },
  };
}

function acceptedNotMarked(world: World): HeldMoment {
  const mark = world.natsProxy.hold((m) => m.way === "request" && recordOf(m)?.terminal != null);
  const gate = stopGateAtItsEnd(world);
  return {
    async reached() {
      await gate.reached();
      await within("the record is to be marked", mark.reached);
    },
    goOn() {
      mark.release();
      gate.wake();
    },
    lose() {
      mark.drop();
      gate.wake();
    },
    [Symbol.dispose]() {
      mark.release();
      gate[Symbol.dispose]();
    },
  };
}

function markedNotDeleted(world: World): HeldMoment {
  const gate = stopGateAtItsEnd(world);
  return {
    async reached() {
      const folder = await gate.reached();
      await eventually(() => Deno.stat(`${folder}/terminal`).then(() => true), {
        what: "the terminal marker",
      });
    },
    goOn: gate.wake,
    lose: gate.wake,
    [Symbol.dispose]: () => gate[Symbol.dispose](),
  };
}

/** A task on its way to the controller. */
export function isHandOut({ name, answer }: ProxiedCall): boolean {
  return name === "FetchTask" && answer?.status === 200 &&
    fromBinary(FetchTaskResponseSchema, answer.body).task !== undefined;
}

/** The empty UpdateLog by which a claim reads where the log stands. */
export function isClaimLook({ name, answer, request }: ProxiedCall): boolean {
  if (name !== "UpdateLog" || answer !== null) return false;
  const { rows, noMore } = fromBinary(UpdateLogRequestSchema, request);
  return rows.length === 0 && !noMore;
}

/** A state that ends a job. */
export function isFinalState({ name, request }: ProxiedCall): boolean {
  return name === "UpdateTask" &&
    (fromBinary(UpdateTaskRequestSchema, request).state?.result ?? 0) !== 0;
}

function isFinalAnswer(call: ProxiedCall): boolean {
  return isFinalState(call) && call.answer?.status === 200;
}

function isPublish({ subject }: ProxiedMessage): boolean {
  return subject.startsWith("ci.assignment.");
}

interface RecordText {
  readonly uid: string | null;
  readonly claimedBy: unknown;
  readonly terminal: unknown;
}

/** The record that a message writes, if it writes one. */
export function recordOf({ subject, text }: ProxiedMessage): RecordText | undefined {
  if (!subject.startsWith("$KV.CI_RUNNER_STATE.task.")) return undefined;
  return JSON.parse(text) as RecordText;
}
