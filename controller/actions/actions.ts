import type { Action, ActionKind, ReleaseTier } from "./action_kinds.ts";
import type { Call } from "../backend.ts";
import type { AssignmentId } from "../model/ids.ts";
import type { Actor } from "../model/role.ts";
import type { ReleasePreview } from "./release_preview.ts";
import type { OperationView } from "../views/views.ts";

/** Who asks for an action, and why. */
export interface ActionRequest {
  readonly actor: Actor;
  readonly note: string;
  /** Of the HTTP request: in the log, in the audit and in the answer. */
  readonly requestId: string;
  /** `Idempotency-Key`: the same one with the same action is the same operation. */
  readonly key: string | null;
  /** `If-Match`: a tag of {@link Actions.tagOf}. */
  readonly ifMatch: string | null;
}

/**
 * Why an action was not taken. `detail` is English: what is the matter, and the way out. One that does
 * not fit is kept as a failed operation, too, for the page that shows its row.
 */
export type Refusal =
  | { readonly kind: "absent"; readonly detail: string }
  /** The role of who asked does not suffice. */
  | { readonly kind: "forbidden"; readonly detail: string }
  /** It does not fit to how things stand: `current`. */
  | {
    readonly kind: "conflict";
    readonly detail: string;
    readonly current: unknown;
    readonly operation?: OperationView;
  }
  /** The target has changed since the caller looked: `If-Match` names another tag. */
  | {
    readonly kind: "stale";
    readonly detail: string;
    readonly current: unknown;
    readonly operation?: OperationView;
  }
  /** The key was used for another action. */
  | { readonly kind: "differs"; readonly detail: string }
  /** Not now: a server is away, or another process leads. Nothing was done. */
  | { readonly kind: "unavailable"; readonly detail: string };

/** What became of an action. `done`: its operation is kept; it may still be running. */
export type ActionOutcome =
  | { readonly kind: "done"; readonly operation: OperationView }
  | Refusal;

/** What operators may do. */
export interface Actions {
  /**
   * Takes an action. Everything is audited, refusals too. Rejects with the call's reason only; an
   * operation that was begun goes on all the same.
   */
  act(action: Action, request: ActionRequest, call: Call): Promise<ActionOutcome>;
  /** What giving an assignment up would do; undefined when it is not known here. */
  preview(id: AssignmentId, tier: ReleaseTier): ReleasePreview | undefined;
  /** For `If-Match`: the tag of a backend or an assignment; null when it is not known here. */
  tagOf(target: string): string | null;
  /** Audits an action that was refused before it came here: by role, or by its form. */
  refused(
    action: { readonly kind: ActionKind; readonly target: string },
    request: ActionRequest,
    detail: string,
  ): void;
}
