import {
  DeclareRequestSchema,
  type FetchTaskResponse,
  FetchTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { create, fromBinary, toBinary } from "../proto/runtime.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { backoffMs } from "../lib/retry.ts";
import type { FacadeApi } from "./facade_api.ts";
import type { Outbox } from "./outbox.ts";
import { denied, protoAnswer, type RunnerAnswer } from "./runner_answer.ts";

/**
 * The way of the one task to the runner: Declare, then FetchTask until it comes. The facade refusing
 * either, or offering another task, is the end of it.
 */
export interface Handover {
  /** Held until the facade answers. Rejects with the signal's reason. */
  declare(body: Uint8Array, signal: AbortSignal): Promise<RunnerAnswer>;
  /** Answers within 4 s, with no task if need be. Rejects with the signal's reason. */
  fetchTask(body: Uint8Array, signal: AbortSignal): Promise<RunnerAnswer>;
}

/** What it works with. */
export interface HandoverDeps {
  readonly facade: Pick<FacadeApi, "rpc">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** The only task this executor may hold. */
  readonly taskId: bigint;
  readonly outbox: Pick<Outbox, "started">;
  /** What the runner called itself. */
  readonly onDeclare: (version: string) => void;
  /** The task was answered to the runner, or it is clear that it never will be. */
  readonly onTask: (task: HandedOver | { readonly refused: string }) => void;
}

/** The task is the runner's. */
export interface HandedOver {
  /** The runner's row 0 is Gitea's row `logOffset`; undefined when the facade did not say. */
  readonly logOffset: number | undefined;
}

/** The official runner gives FetchTask 5 s. */
export const HOLD_MS = 4000;
const FETCH_RETRY = { firstMs: 100, maxMs: 1000 };
const DECLARE_RETRY = { firstMs: 100, maxMs: 2000 };
/** By which Gitea tells runners what it can do. */
const CAPABILITIES = "x-gitea-actions-capabilities";
/** By which the facade tells the gate where the job's log begins; the runner never sees it. */
const LOG_OFFSET = "x-log-offset";

/** Makes the {@link Handover} of one task. */
export function createHandover(deps: HandoverDeps): Handover {
  const { facade, clock, outbox } = deps;
  /** Kept until the runner's first report, so that a lost answer can be repeated. */
  let handedOver: Uint8Array | undefined;
  let over = false;

  const refuse = (why: string): RunnerAnswer => {
    over = true;
    deps.onTask({ refused: why });
    return none();
  };
  const take = (
    { body, headers }: { body: Uint8Array; headers: Readonly<Record<string, string>> },
  ): RunnerAnswer => {
    const task = readResponse(body)?.task;
    if (task === undefined) return protoAnswer(body);
    if (task.id !== deps.taskId) {
      return refuse(`facade offered task ${task.id}, this executor is for ${deps.taskId}`);
    }
    handedOver = body;
    const offset = headers[LOG_OFFSET] ?? "";
    deps.onTask({ logOffset: /^\d{1,15}$/.test(offset) ? Number(offset) : undefined });
    return protoAnswer(body);
  };

  return {
    async declare(body, signal) {
      deps.onDeclare(fromBinary(DeclareRequestSchema, body).version);
      for (let attempt = 1;; attempt++) {
        const sent = await facade.rpc("/runner.v1.RunnerService/Declare", body, { signal });
        if (sent.kind === "accepted") {
          const capabilities = sent.value.headers[CAPABILITIES];
          const headers = capabilities === undefined ? {} : { [CAPABILITIES]: capabilities };
          return protoAnswer(sent.value.body, headers);
        }
        if (sent.kind === "refused") {
          refuse(sent.why);
          return denied(sent.why);
        }
        await clock.sleep(backoffMs(attempt, DECLARE_RETRY, deps.random), signal);
      }
    },
    async fetchTask(body, signal) {
      if (handedOver !== undefined && !outbox.started) return protoAnswer(handedOver);
      if (over || outbox.started) return none();
      const until = clock.monotonic() + HOLD_MS;
      for (let attempt = 1; clock.monotonic() < until; attempt++) {
        const timeoutMs = until - clock.monotonic();
        const call = { signal, timeoutMs };
        const sent = await facade.rpc("/runner.v1.RunnerService/FetchTask", body, call);
        if (sent.kind === "accepted") return take(sent.value);
        if (sent.kind === "refused") return refuse(sent.why);
        deps.logger.warn("facade gives no task now", { why: sent.why });
        const wait = backoffMs(attempt, FETCH_RETRY, deps.random);
        await clock.sleep(Math.max(0, Math.min(wait, until - clock.monotonic())), signal);
      }
      return none();
    },
  };
}

function none(): RunnerAnswer {
  return protoAnswer(toBinary(FetchTaskResponseSchema, create(FetchTaskResponseSchema)));
}

function readResponse(body: Uint8Array): FetchTaskResponse | undefined {
  return body.length === 0 ? undefined : fromBinary(FetchTaskResponseSchema, body);
}
