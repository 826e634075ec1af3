import { isObject } from "../../lib/json_object.ts";
import {
  type AssignmentId,
  type BackendName,
  isBackendName,
  parseAssignmentId,
} from "../model/ids.ts";

/** How an assignment is given up; see docs/adr/0029. */
export const RELEASE_TIERS = ["graceful", "forced", "forget"] as const;
/** One of {@link RELEASE_TIERS}. */
export type ReleaseTier = (typeof RELEASE_TIERS)[number];

/** How an executor without an assignment is given up: there is no job to wait for. */
export const STRANGER_TIERS = ["forced", "forget"] as const;
/** One of {@link STRANGER_TIERS}. */
export type StrangerTier = (typeof STRANGER_TIERS)[number];

/** Labels that the `vm` backend may be offered under. */
export const VM_LABELS = ["vm", "vm-dev"] as const;
/** One of {@link VM_LABELS}. */
export type VmLabel = (typeof VM_LABELS)[number];

/** What became of an action in the audit: taken, not let through, or begun and not carried out. */
export const AUDIT_RESULTS = ["done", "refused", "failed"] as const;
/** One of {@link AUDIT_RESULTS}. */
export type AuditResult = (typeof AUDIT_RESULTS)[number];

/** Until when something should be done: a point in time, or so long after the start; milliseconds. */
export type Deadline =
  | { readonly kind: "at"; readonly at: number }
  | { readonly kind: "within"; readonly ms: number };

/** What an operator asks for. */
export type Action =
  /** Take nothing new. */
  | { readonly kind: "cordon"; readonly backend: BackendName }
  /** Take nothing new, let stored ones finish unless `hold`, wait until nothing runs. */
  | {
    readonly kind: "drain";
    readonly backend: BackendName;
    readonly deadline: Deadline | null;
    readonly hold: boolean;
  }
  /** Lifts cordon and drain. */
  | { readonly kind: "resume"; readonly backend: BackendName }
  /** Slots; null goes back to the configured value. */
  | { readonly kind: "capacity"; readonly backend: BackendName; readonly value: number | null }
  /** The label of `vm`; null goes back to the configured one. */
  | { readonly kind: "label"; readonly backend: BackendName; readonly value: VmLabel | null }
  /** What the drain of that operation has set is put back. */
  | { readonly kind: "undo"; readonly operation: string }
  | { readonly kind: "cancel"; readonly id: AssignmentId }
  /** A parked one is tried now. */
  | { readonly kind: "retry"; readonly id: AssignmentId }
  | { readonly kind: "release"; readonly id: AssignmentId; readonly tier: ReleaseTier }
  /** An executor that nobody can account for is deleted; `forget`: it holds no slot from now on. */
  | {
    readonly kind: "release-executor";
    readonly backend: BackendName;
    readonly name: string;
    /** Which one of that name. */
    readonly uid: string;
    readonly tier: StrangerTier;
  }
  /** Another replica is to lead. */
  | { readonly kind: "step-down" };

/** Names of the actions. */
export type ActionKind = Action["kind"];

/** What an action is about, as lists and the audit name it. */
export function targetOf(action: Action): string {
  switch (action.kind) {
    case "cordon":
    case "drain":
    case "resume":
    case "capacity":
    case "label":
      return action.backend;
    case "cancel":
    case "retry":
    case "release":
      return action.id;
    case "undo":
      return action.operation;
    case "release-executor":
      return action.name;
    case "step-down":
      return "leader";
    default:
      return action satisfies never;
  }
}

/** An action as it was stored as JSON; undefined for anything else. */
export function readAction(json: unknown): Action | undefined {
  if (!isObject(json)) return undefined;
  const { kind, backend, id } = json;
  switch (kind) {
    case "cordon":
    case "resume":
      return isBackendName(backend) ? { kind, backend } : undefined;
    case "drain":
      return isBackendName(backend)
        ? { kind, backend, deadline: readDeadline(json.deadline), hold: json.hold === true }
        : undefined;
    case "capacity":
      return isBackendName(backend)
        ? { kind, backend, value: typeof json.value === "number" ? json.value : null }
        : undefined;
    case "label": {
      const value = VM_LABELS.find((label) => label === json.value) ?? null;
      return isBackendName(backend) ? { kind, backend, value } : undefined;
    }
    case "undo":
      return typeof json.operation === "string" ? { kind, operation: json.operation } : undefined;
    case "cancel":
    case "retry":
    case "release": {
      const assignment = typeof id === "string" ? parseAssignmentId(id) : undefined;
      if (assignment === undefined) return undefined;
      if (kind !== "release") return { kind, id: assignment };
      const tier = RELEASE_TIERS.find((each) => each === json.tier);
      return tier === undefined ? undefined : { kind, id: assignment, tier };
    }
    case "release-executor": {
      const tier = STRANGER_TIERS.find((each) => each === json.tier);
      const { name, uid } = json;
      const fits = isBackendName(backend) && typeof name === "string" && typeof uid === "string";
      return fits && tier !== undefined ? { kind, backend, name, uid, tier } : undefined;
    }
    case "step-down":
      return { kind };
    default:
      return undefined;
  }
}

function readDeadline(json: unknown): Deadline | null {
  if (!isObject(json)) return null;
  if (json.kind === "at" && typeof json.at === "number") return { kind: "at", at: json.at };
  if (json.kind === "within" && typeof json.ms === "number") return { kind: "within", ms: json.ms };
  return null;
}
