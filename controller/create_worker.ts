import type { Clock } from "../lib/clock.ts";
import { type Backend, BackendError, type Executor } from "./backend.ts";
import type { Ended, Entry } from "./entry.ts";
import type { JournalEntry } from "./journal.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { ExecutorName } from "./model/ids.ts";
import type { JournalEvent } from "./model/state.ts";
import type { RecordWriter } from "./record_writer.ts";
import { isSpare } from "./spare.ts";
import type { Outcome, Ownership, Worker } from "./worker.ts";

/** What a worker works with. */
export interface WorkerDeps {
  readonly backend: Backend;
  readonly ownership: Ownership;
  readonly writer: RecordWriter;
  readonly clock: Clock;
  nameOf(info: AssignmentInfo): ExecutorName;
  launch(info: AssignmentInfo): Readonly<Record<string, string>>;
  nonce(): string;
  write(entry: JournalEntry): void;
  /** Asks Gitea whether the job is still wanted, unless it has just said so; never throws for its sake. */
  confirm(entry: Entry): Promise<void>;
  /** Nothing was heard of the executor for so long that it has ended, whatever the backend says. */
  isSilent(entry: Entry): boolean;
  /** Throws when this process may not act any more; called before each effect. */
  guard(): void;
}

/** Makes the {@link Worker} of one backend. */
export function createWorker(deps: WorkerDeps): Worker {
  const { backend, ownership, writer } = deps;

  const journal = (entry: Entry, event: JournalEvent, executor: Executor | null) =>
    deps.write({
      at: deps.clock.now(),
      event,
      component: "worker",
      backend: backend.name,
      assignment: entry.info.id,
      executor: executor?.name ?? null,
      phase: executor?.phase ?? null,
      retryDelayMs: 0,
      detail: null,
    });

  const isOurs = async (entry: Entry, executor: Executor): Promise<boolean> => {
    if (entry.executor?.uid === executor.uid) return true;
    const proof = entry.record?.value ?? entry.remains;
    if (proof === null) return false;
    if (proof.uid !== null) return proof.uid === executor.uid;
    return await ownership.verify(executor.name, executor.metadata, proof.nonce);
  };

  const make = async (entry: Entry, name: ExecutorName, signal: AbortSignal) => {
    const nonce = entry.record?.value.nonce ?? "";
    const metadata = await ownership.compose(name, entry.info, nonce);
    deps.guard();
    entry.mayExist = true;
    entry.overdue = false;
    try {
      const executor = await backend.create(
        { name, metadata, environment: deps.launch(entry.info), assignment: entry.info },
        { signal },
      );
      journal(entry, "executor_created", executor);
      return executor;
    } catch (error) {
      if (error instanceof BackendError && isRefusal(error)) entry.mayExist = false;
      throw error;
    }
  };

  /** Counts a failure before the claim and prepares the record for another executor. */
  const failed = async (entry: Entry, ended: Ended, signal: AbortSignal): Promise<Outcome> => {
    const nonce = deps.nonce();
    const record = await writer.change(
      entry,
      (r) => r.claimedBy === null ? { ...r, failures: r.failures + 1, uid: null, nonce } : r,
      signal,
    );
    entry.ending = null;
    // Said by the one that has failed: no reason for what becomes of its successor.
    if (record.claimedBy === null) entry.terminating = null;
    const { code, detail, lastLines } = ended;
    return record.claimedBy === null
      ? { kind: "executor_failed", code, detail, lastLines, failures: record.failures }
      : { kind: "claimed", executor: record.claimedBy.executor };
  };

  const bind = async (entry: Entry, executor: Executor, signal: AbortSignal): Promise<Outcome> => {
    if (executor.identityTarget === null) {
      journal(entry, "identity_target_pending", executor);
      const why = executor.waiting ??
        { code: "identity_pending" as const, detail: `executor is ${executor.phase}` };
      return { kind: "not_ready", ...why };
    }
    deps.guard();
    await backend.bindIdentity(executor, entry.info, { signal });
    journal(entry, "identity_bound", executor);
    return { kind: "ready", executor };
  };

  const absent = async (
    entry: Entry,
    name: ExecutorName,
    seen: (executor: Executor) => void,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    entry.mayExist = false;
    journal(entry, "executor_absent", null);
    const uid = entry.record?.value.uid ?? null;
    if (uid !== null) {
      deps.guard();
      // What a backend has only missed must not turn up again beside its successor.
      await backend.delete({ name, uid }, { signal });
      return await failed(entry, entry.ending ?? VANISHED, signal);
    }
    await deps.confirm(entry);
    signal.throwIfAborted();
    const executor = await make(entry, name, signal);
    seen(executor);
    await writer.change(entry, (r) => ({ ...r, uid: executor.uid }), signal);
    return await bind(entry, executor, signal);
  };

  /** One that will not claim: its successor is made when it is gone, and not before. */
  const replace = async (entry: Entry, found: Executor, signal: AbortSignal): Promise<Outcome> => {
    const ended = found.ended ?? entry.ending ?? TERMINATED;
    entry.ending = ended;
    deps.guard();
    await backend.delete(found, { signal });
    const left = await backend.find(found.name, { signal });
    if (left?.uid !== found.uid) return await failed(entry, ended, signal);
    return { kind: "not_ready", code: ended.code, detail: `${ended.detail}; it is being deleted` };
  };

  const accept: Worker["accept"] = async (entry, seen, signal) => {
    const name = deps.nameOf(entry.info);
    const found = await backend.find(name, { signal });
    if (found === undefined) return await absent(entry, name, seen, signal);
    if (!await isOurs(entry, found)) {
      if (await isSpare(entry, found, ownership)) {
        deps.guard();
        await backend.delete(found, { signal });
        return { kind: "not_ready", code: "executor_starting", detail: SPARE };
      }
      return {
        kind: "backend_failed",
        code: "backend_unavailable",
        detail: `an object named "${name}" that is not ours is in the way; delete it`,
        executor: "none",
      };
    }
    journal(entry, "executor_found", found);
    seen(found);
    if (entry.record?.value.uid === null) {
      await writer.change(entry, (r) => ({ ...r, uid: found.uid }), signal);
    }
    // One that waits for its identity is silent, too: it has the whole claim time-out for that.
    if (entry.overdue && deps.isSilent(entry)) entry.ending ??= SILENT;
    if (found.ended !== null || found.terminating || entry.ending !== null) {
      return await replace(entry, found, signal);
    }
    return await bind(entry, found, signal);
  };

  return {
    backend,
    nameOf: deps.nameOf,
    isOurs,
    isSpare: (entry, executor) => isSpare(entry, executor, ownership),
    async accept(entry, seen, signal) {
      try {
        return await accept(entry, seen, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof BackendError)) throw error;
        // Only what surely does not exist lets the slot go.
        const doubt = entry.mayExist || entry.record?.value.uid != null;
        return {
          kind: "backend_failed",
          code: error.code === "quota" ? "quota" : "backend_unavailable",
          detail: error.message,
          executor: doubt ? "possible" : "none",
        };
      }
    },
    async remove(entry, signal) {
      const found = await backend.find(deps.nameOf(entry.info), { signal });
      if (found === undefined || !await isOurs(entry, found)) return "gone";
      deps.guard();
      await backend.delete(found, { signal });
      const left = await backend.find(found.name, { signal });
      return left?.uid === found.uid ? "leaving" : "gone";
    },
    async remains(entry, signal) {
      const found = await backend.find(deps.nameOf(entry.info), { signal });
      return found !== undefined && await isOurs(entry, found) ? "leaving" : "gone";
    },
  };
}

const SPARE = "a second executor of this job, made by a create without an answer, is being deleted";
const VANISHED: Ended = {
  code: "executor_failed",
  detail: "the executor vanished before it asked for its job",
  lastLines: [],
};
const TERMINATED: Ended = {
  code: "executor_failed",
  detail: "the executor was deleted by somebody before it asked for its job",
  lastLines: [],
};
const SILENT: Ended = {
  code: "executor_failed",
  detail: "the executor has not asked for its job and has been silent for 3 minutes; its backend " +
    "does not tell of an end",
  lastLines: [],
};

/** Only a plain no proves that nothing was made. */
function isRefusal(error: BackendError): boolean {
  return error.code === "quota" || error.code === "refused" || error.code === "invalid";
}
