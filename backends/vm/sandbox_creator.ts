import {
  BackendError,
  type Call,
  type Executor,
  type ExecutorSpec,
} from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { CreateLimiter } from "./create_limiter.ts";
import { toBackendError } from "./errors.ts";
import { type NewSandbox, type Sandbox, SandboxError, type Sandboxes } from "./sandboxes.ts";
import { failureCode } from "./status.ts";
import { tombstone } from "./tombstones.ts";

/** Makes sandboxes, at most one for each name, at a server that makes one for each request. */
export interface SandboxCreator {
  /**
   * Rejects with a {@link BackendError}, or the signal's reason: the request goes on then, because a
   * sandbox would be made all the same, and {@link SandboxCreator.underway} has it.
   */
  create(spec: ExecutorSpec, sandbox: NewSandbox, call: Call): Promise<Sandbox | Executor>;
  /** The create of that name that is under way, whoever still waits for it; undefined when there is none. */
  underway(name: ExecutorName): SandboxInTheMaking | undefined;
  /** What is being made under that name has been deleted: the server looks for it in vain for a while. */
  undone(name: ExecutorName): void;
}

/** A create under way: what it makes may be there before its answer. */
export interface SandboxInTheMaking {
  /** Waits a moment for its end, whatever that is. Rejects with the signal's reason only. */
  settled(call: Call): Promise<void>;
}

/** The whole of one request. */
interface Underway {
  readonly done: Promise<void>;
  undone: boolean;
}

const MOMENT_MS = 1_000;

/** What {@link createSandboxCreator} needs. */
export interface SandboxCreatorDeps {
  readonly api: Pick<Sandboxes, "create">;
  readonly limiter: CreateLimiter;
  readonly clock: Clock;
  /** For how long a create without an answer may still come through. */
  readonly doubtMs: number;
  /** Sandboxes of that name, whoever made them. */
  lookUp(name: ExecutorName, call: Call): Promise<readonly Sandbox[]>;
  randomId(): string;
  guard(): void;
}

/**
 * Makes {@link SandboxCreator}. The server's create is not idempotent, so that before each one the name is
 * looked up by metadata, and after each lost answer nothing is made under that name until the lost one
 * must have shown itself.
 */
export function createSandboxCreator(deps: SandboxCreatorDeps): SandboxCreator {
  const { api, limiter, clock } = deps;
  const underway = new Map<ExecutorName, Underway>();
  const doubts = new Map<ExecutorName, number>();
  const never = new AbortController().signal;

  const dispel = () => {
    const now = clock.monotonic();
    for (const [name, until] of doubts) if (until <= now) doubts.delete(name);
  };

  const refuseTaken = async (action: string, name: ExecutorName, call: Call) => {
    const found = await deps.lookUp(name, call);
    if (found.length > 0) throw new BackendError("conflict", `${action}: the name is taken`);
    dispel();
    const until = doubts.get(name);
    if (until === undefined) return;
    const seconds = Math.ceil((until - clock.monotonic()) / 1000);
    const why = `an earlier one may still come through: looked for for ${seconds} s more`;
    throw new BackendError("unknown_outcome", `${action}: ${why}`);
  };

  /** The whole of one request, whoever still waits for it. */
  const request = async (
    action: string,
    { spec, sandbox }: { readonly spec: ExecutorSpec; readonly sandbox: NewSandbox },
    call: Call,
  ): Promise<Sandbox | Executor> => {
    const permit = await limiter.take(action, call);
    try {
      deps.guard();
    } catch (error) {
      permit.dropped();
      throw error;
    }
    try {
      const made = await api.create(sandbox, { signal: never });
      permit.succeeded();
      doubts.delete(spec.name);
      return made;
    } catch (error) {
      const failure = error instanceof SandboxError
        ? error
        : new SandboxError("unknown_outcome", "given up", { cause: error });
      // What was deleted did not start in time: that says nothing about the pool.
      if (underway.get(spec.name)?.undone) permit.dropped();
      else permit.failed(failure);
      return await afterFailure(action, spec, failure);
    }
  };

  const afterFailure = async (
    action: string,
    spec: ExecutorSpec,
    error: SandboxError,
  ): Promise<Executor> => {
    // The server says that it has removed the sandbox; it has been seen to fail at that.
    const removed = error.code === "start_timeout" || error.code === "start_failed";
    const left = removed && await mayBeLeft(spec.name);
    if (error.code === "start_failed" && !left) return failedStart(spec, error);
    if (error.code !== "unknown_outcome" && !left) throw toBackendError(action, error);
    doubts.set(spec.name, clock.monotonic() + deps.doubtMs);
    throw new BackendError("unknown_outcome", `${action}: ${error.message}`, { cause: error });
  };

  const mayBeLeft = async (name: ExecutorName): Promise<boolean> => {
    try {
      const found = await deps.lookUp(name, { signal: never });
      return found.some(({ state }) => state !== "Stopping");
    } catch {
      return true;
    }
  };

  const failedStart = (spec: ExecutorSpec, { message }: SandboxError): Executor =>
    tombstone(
      {
        name: spec.name,
        uid: `failed-${deps.randomId()}`,
        metadata: spec.metadata,
        createdAt: clock.now(),
      },
      { phase: "Failed", code: failureCode(message), detail: message },
    );

  return {
    async create(spec, sandbox, call) {
      const { name } = spec;
      const action = `Make executor "${name}"`;
      if (underway.has(name)) throw new BackendError("conflict", `${action}: it is being made`);
      const { promise, resolve } = Promise.withResolvers<void>();
      underway.set(name, { done: promise, undone: false });
      const end = () => {
        underway.delete(name);
        resolve();
      };
      try {
        await refuseTaken(action, name, call);
      } catch (error) {
        end();
        throw error;
      }
      const making = request(action, { spec, sandbox }, call);
      // Whether or not somebody still waits for it.
      void making.then(end, end);
      return await abortable(making, call.signal);
    },
    underway(name) {
      const waiting = underway.get(name);
      if (waiting === undefined || waiting.undone) return undefined;
      return {
        async settled({ signal }) {
          using moment = clock.timeout(MOMENT_MS);
          await abortable(waiting.done, AbortSignal.any([signal, moment.signal])).catch(() => {});
          signal.throwIfAborted();
        },
      };
    },
    undone(name) {
      const waiting = underway.get(name);
      if (waiting !== undefined) waiting.undone = true;
    },
  };
}
