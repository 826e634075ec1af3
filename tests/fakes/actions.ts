import type { Action, ReleaseTier } from "../../controller/actions/action_kinds.ts";
import { targetOf } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome, ActionRequest, Actions } from "../../controller/actions/actions.ts";
import type { ReleasePreview } from "../../controller/actions/release_preview.ts";
import type { AssignmentView, OperationView } from "../../controller/views/views.ts";

/** Actions that only write down what was asked for. */
export interface FakeActions extends Actions {
  readonly asked: readonly { readonly action: Action; readonly request: ActionRequest }[];
  /** The next answer, in place of a running operation. */
  answer(outcome: ActionOutcome): void;
}

/** Makes {@link FakeActions}; jobs that `find` has can be given up. */
export function createFakeActions(
  { now, find }: { readonly now: () => number; find(id: string): AssignmentView | undefined },
): FakeActions {
  const asked: { readonly action: Action; readonly request: ActionRequest }[] = [];
  let next: ActionOutcome | null = null;
  return {
    asked,
    answer: (outcome) => next = outcome,
    act(action, request) {
      asked.push({ action, request });
      const outcome = next;
      next = null;
      return Promise.resolve(
        outcome ?? { kind: "done", operation: operationOf(action, request, now()) },
      );
    },
    preview(id, tier) {
      const job = find(id);
      return job === undefined ? undefined : previewOf(job, tier);
    },
    tagOf: (target) =>
      find(target) !== undefined || ["pod", "vm", "leader"].includes(target)
        ? `"tag-${target}"`
        : null,
    refused() {},
  };
}

/** The sample views have an operation of this id. */
function operationOf(action: Action, { actor, note }: ActionRequest, now: number): OperationView {
  return {
    id: "op-1",
    action: action.kind,
    target: targetOf(action),
    state: "running",
    progress: { done: 0, total: 1 },
    startedAt: new Date(now).toISOString(),
    endedAt: null,
    by: actor.name,
    note,
    before: null,
    after: null,
    error: null,
  };
}

function previewOf(job: AssignmentView, tier: ReleaseTier): ReleasePreview {
  const waits = tier === "graceful" && job.state === "running";
  return {
    tier,
    assignment: job,
    tag: `"tag-${job.id}"`,
    refused: job.state === "terminal" && tier === "graceful" ? "Wait: its job has ended" : null,
    slot: job.executor === null
      ? "none"
      : tier === "forget"
      ? "freed_at_once"
      : waits
      ? "freed_when_job_ends"
      : "freed_when_executor_gone",
    executor: {
      name: job.executor,
      fate: job.executor === null
        ? "none"
        : tier === "forget"
        ? "deleted_when_possible"
        : waits
        ? "ends_by_itself"
        : "deleted",
    },
    identity: job.executor === null ? "none" : "deleted_with_executor",
    message: job.state === "running" ? "none" : "removed",
    gitea: waits ? { result: null, when: "when_its_runner_has_ended" } : {
      result: tier === "graceful" ? "cancelled" : "failure",
      when: "at_once",
    },
    text: [],
  };
}
