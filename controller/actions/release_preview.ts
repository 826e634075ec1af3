import type { ReleaseTier } from "./action_kinds.ts";
import { assignmentTag } from "./action_tags.ts";
import type { Entry } from "../entry.ts";
import { holdsSlot, isBeforeClaim } from "../model/state.ts";
import { assignmentView } from "../views/view_of.ts";
import type { AssignmentView } from "../views/views.ts";

/** What giving an assignment up will do: said before it is done (docs/adr/0029). */
export interface ReleasePreview {
  readonly tier: ReleaseTier;
  readonly assignment: AssignmentView;
  /** For `If-Match`: the action is refused if the assignment has changed since. */
  readonly tag: string;
  /** Why it would be refused; null when it would not. */
  readonly refused: string | null;
  readonly slot: "none" | "freed_at_once" | "freed_when_executor_gone" | "freed_when_job_ends";
  readonly executor: {
    readonly name: string | null;
    readonly fate: "none" | "ends_by_itself" | "deleted" | "deleted_when_possible";
  };
  /** Its SPIFFE identity entry goes with the executor. */
  readonly identity: "none" | "deleted_with_executor";
  /** The stored task. */
  readonly message: "none" | "removed";
  readonly gitea: {
    /** How the job ends there; null when it has ended already, or will by its runner's own word. */
    readonly result: "failure" | "cancelled" | null;
    readonly when: "ended_already" | "at_once" | "when_its_runner_has_ended";
  };
  /** The same in English sentences. */
  readonly text: readonly string[];
}

/** The preview of one tier. Pure. */
export function previewRelease(entry: Entry, tier: ReleaseTier): ReleasePreview {
  const fate = fateOf(entry, tier);
  return {
    tier,
    assignment: assignmentView(entry, null),
    tag: assignmentTag(entry),
    refused: refusalOf(entry, tier),
    ...fate,
    text: textOf(entry, fate),
  };
}

/** Why this tier does not fit to how things stand; null when it does. */
export function refusalOf({ info, state }: Entry, tier: ReleaseTier): string | null {
  const { id } = info;
  switch (state.kind) {
    case "cleaned":
      return `Leave "${id}" as it is: nothing is left of it`;
    case "settling":
    case "terminal":
      return tier === "graceful"
        ? `Wait, or release "${id}" by force: its job has ended, its executor is being deleted`
        : null;
    case "stored":
    case "parked":
    case "admitted":
    case "starting":
    case "ready":
    case "claimed":
    case "running":
      return null;
    default:
      return state satisfies never;
  }
}

type Fate = Pick<ReleasePreview, "slot" | "executor" | "identity" | "message" | "gitea">;

function fateOf(entry: Entry, tier: ReleaseTier): Fate {
  const { state } = entry;
  const name = entry.executor?.name ?? null;
  const claimed = state.kind === "claimed" || state.kind === "running";
  const over = state.kind === "settling" || state.kind === "terminal" || state.kind === "cleaned";
  const waits = tier === "graceful" && claimed;
  const hasExecutor = name !== null || mayHaveExecutor(entry);
  return {
    slot: !holdsSlot(state)
      ? "none"
      : tier === "forget"
      ? "freed_at_once"
      : waits
      ? "freed_when_job_ends"
      : "freed_when_executor_gone",
    executor: {
      name,
      fate: !hasExecutor
        ? "none"
        : waits
        ? "ends_by_itself"
        : tier === "forget"
        ? "deleted_when_possible"
        : "deleted",
    },
    identity: hasExecutor ? "deleted_with_executor" : "none",
    message: isBeforeClaim(state) || (state.kind === "claimed" && entry.sequence !== null)
      ? "removed"
      : "none",
    gitea: over
      ? { result: null, when: "ended_already" }
      : waits
      ? { result: null, when: "when_its_runner_has_ended" }
      : { result: tier === "graceful" ? "cancelled" : "failure", when: "at_once" },
  };
}

function mayHaveExecutor({ state, mayExist }: Entry): boolean {
  switch (state.kind) {
    case "stored":
    case "parked":
    case "admitted":
      return mayExist;
    case "starting":
    case "ready":
    case "claimed":
    case "running":
      return true;
    case "settling":
    case "terminal":
      return state.presence !== "gone" && state.presence !== "none";
    case "cleaned":
      return false;
    default:
      return state satisfies never;
  }
}

const SLOT: Readonly<Record<Fate["slot"], string>> = {
  none: "It holds no slot.",
  freed_at_once:
    "Its slot is given back at once, although its executor may still run: more may run than there are slots.",
  freed_when_executor_gone:
    "Its slot is given back when the backend says that the executor is gone.",
  freed_when_job_ends: "Its slot is given back when the job has ended.",
};

function textOf({ info }: Entry, { slot, executor, identity, message, gitea }: Fate): string[] {
  const job = `Job "${info.job}" of ${info.repository}`;
  const gone = executor.name === null ? "What is being made for it" : `Executor "${executor.name}"`;
  return [
    gitea.when === "ended_already"
      ? `${job} has ended at Gitea: that stays as it is.`
      : gitea.when === "at_once"
      ? `${job} ends at Gitea as ${gitea.result}, at once, with your note in its log.`
      : `${job} is told to end: its runner cleans up and reports the end, or is ended after 2 minutes.`,
    SLOT[slot],
    {
      none: "It has no executor.",
      ends_by_itself: `${gone} ends by itself and is deleted.`,
      deleted: `${gone} is deleted.`,
      deleted_when_possible: `${gone} is deleted as soon as its backend can do it.`,
    }[executor.fate],
    ...identity === "none" ? [] : ["Its SPIFFE identity ends with the executor."],
    message === "none" ? "It is not in the queue any more." : "It is taken out of the queue.",
  ];
}
