import type { Clock } from "../lib/clock.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import { BackendError } from "./backend.ts";
import type { Deed } from "./effects.ts";
import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { ReasonCode } from "./model/reason.ts";
import type { Offers } from "./offers.ts";
import { type Proofs, UNPROVEN } from "./proofs.ts";
import type { Recorder } from "./recorder.ts";
import { restoredState } from "./restored_state.ts";
import type { Strangers } from "./strangers.ts";
import { type FactsDeps, type Found, gatherFacts, infoOf } from "./recovery_facts.ts";

const LEFTOVER = "its job has ended, it never got an identity, and it could not be deleted";

/** What {@link recoverBackend} needs. */
export interface RecoveryDeps extends FactsDeps {
  readonly ledger: Ledger;
  readonly offers: Offers;
  readonly strangers: Strangers;
  readonly proofs: Pick<Proofs, "expect">;
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** Why a stored one waits now. */
  waiting(): { readonly code: ReasonCode; readonly detail: string };
  run(entry: Entry, effect: Deed): void;
}

/**
 * Rebuilds one backend's part of the ledger from what is durable: executors, records, stored
 * messages.
 *
 * Everything is read first, then the ledger is filled in one go: a reading that fails leaves it as it
 * was. An executor that cannot be verified is shown and stops nobody. Throws while the backend cannot
 * be listed; the caller keeps only this backend's consumer closed and tries again.
 */
export async function recoverBackend(
  deps: RecoveryDeps,
  signal: AbortSignal,
): Promise<{ readonly executors: number; readonly stored: number }> {
  const { backend } = deps.worker;
  const { found, strangers, unproven, leftovers, stored } = await gatherFacts(deps, signal);
  // Oldest first: those without a message were admitted before all that still have one.
  found.sort((a, b) => placeOf(a) - placeOf(b) || ageOf(a) - ageOf(b));
  for (const stranger of strangers) deps.strangers.show(stranger);
  for (const each of found) restore(deps, each);
  for (const each of unproven) {
    const { info, message, opened } = each;
    deps.proofs.expect({
      ...each,
      adopt: (record, executor) =>
        restore(deps, {
          info: infoOf(info.id, info.taskId, record.value),
          record,
          executor,
          proof: "heartbeat",
          message,
          opened,
        }),
    });
  }
  for (const executor of leftovers) {
    try {
      await backend.delete(executor, { signal });
    } catch (error) {
      if (!(error instanceof BackendError)) throw error;
      deps.strangers.show({ executor, ownership: "unknown", why: LEFTOVER });
    }
  }
  const recovered = found.filter(({ executor }) => executor !== null).length;
  deps.recorder.recovered(backend.name, recovered);
  return { executors: recovered, stored };
}

function restore(deps: RecoveryDeps, found: Found): void {
  const { ledger, offers, clock, run } = deps;
  const { info, record, executor, message, opened } = found;
  const known = ledger.get(info.id);
  // The scheduler has stored it while we were reading.
  if (known !== undefined && record === null) return;
  const state = restoredState({
    record: record?.value ?? null,
    executor,
    stored: message !== null,
    now: clock.now(),
  });
  const entry = ledger.add(info, state, record?.value.storedAt ?? message?.storedAt ?? clock.now());
  entry.record = record;
  entry.restored = record !== null;
  entry.executor = executor;
  // An earlier process may have asked for one just before it ended.
  entry.mayExist = record !== null && state.kind === "stored";
  entry.unproven = found.unproven ?? false;
  entry.sequence = message?.sequence ?? null;
  if (found.proof !== null) entry.recovered = { at: clock.now(), proof: found.proof };
  explain(deps, entry);

  const value = record?.value;
  const executorLives = executor !== null && executor.ended === null;
  const given = state.kind !== "settling" && (state.kind !== "terminal" || executorLives);
  if (value?.claimedBy != null && given) {
    const task: Task | null = state.kind === "claimed" && opened?.kind === "readable"
      ? opened.task
      : null;
    const { claimedBy: claim, logOffset, steps } = value;
    offers.recoverClaimed(info, { claim, logOffset, steps, task });
  }
  switch (state.kind) {
    case "stored":
    case "parked":
    case "starting":
      if (message === null) {
        return giveUp(entry, "payload_lost", "the stored task is gone from the queue");
      }
      if (state.kind !== "starting" || opened === null) return;
      if (opened.kind === "invalid") return giveUp(entry, "invalid", opened.detail);
      if (opened.kind === "unreadable") {
        entry.reason = { code: "unreadable", detail: opened.detail, since: clock.now() };
        return;
      }
      offers.offer(info, opened.task);
      return run(entry, { kind: "accept", afterMs: 0 });
    case "settling":
      // Given up by an operator, and not yet seen to be gone.
      return run(entry, { kind: "settle", result: state.result, ...state.reason });
    case "terminal":
      if (state.message === "in_hand") run(entry, { kind: "ack" });
      // Given up: it is deleted whatever it does.
      if (state.presence === "leaving") run(entry, { kind: "delete_executor" });
      if (state.marker === "pending") run(entry, { kind: "mark" });
      else if (state.presence === "ended") run(entry, { kind: "delete_executor" });
      if (state.presence === "gone" && state.message === "gone") run(entry, { kind: "finish" });
      return;
    default:
      return; // A claimed one goes on by what its executor reports, or by its loss.
  }

  function giveUp(entry: Entry, code: ReasonCode, detail: string): void {
    ledger.dispatch(entry.info.id, { kind: "gave_up", code, detail });
  }
}

/** Why a restored one waits. */
function explain(deps: RecoveryDeps, entry: Entry): void {
  const since = deps.clock.now();
  switch (entry.state.kind) {
    case "stored":
      if (entry.unproven) {
        entry.reason = {
          code: "awaiting_claim",
          detail: `its executor is there; ${UNPROVEN}`,
          since,
        };
        return;
      }
      entry.reason = { ...deps.waiting(), since };
      return;
    case "parked": {
      const failures = entry.record?.value.failures ?? 0;
      entry.reason = { code: "parked", detail: `${failures} executors failed`, since };
      entry.nextTryAt = entry.state.until;
      return;
    }
    case "starting":
      entry.reason = { code: "executor_starting", detail: "its executor was recovered", since };
      return;
    default:
      return;
  }
}

function placeOf({ message }: Found): number {
  return message?.sequence ?? 0;
}

function ageOf({ record, message }: Found): number {
  return record?.value.storedAt ?? message?.storedAt ?? 0;
}
