import { createHash } from "node:crypto";
import type { Entry } from "../entry.ts";
import type { ControlFlags } from "../records.ts";
import type { Stranger } from "../strangers.ts";

/**
 * The tag of a backend for `If-Match`: it changes with what operators have set, and with nothing else,
 * so that a page which shows other numbers by now is no reason to refuse.
 */
export function backendTag(flags: ControlFlags): string {
  return tagOf(["backend", flags.cordon, flags.drain, flags.capacity, flags.label]);
}

/** The tag of an assignment: it changes with its state and its executor. */
export function assignmentTag({ state, executor, stateSince }: Entry): string {
  const presence = "presence" in state ? state.presence : null;
  return tagOf(["assignment", state.kind, presence, stateSince, executor?.uid ?? null]);
}

/** The tag of an executor without an assignment. */
export function executorTag({ executor, ownership }: Stranger): string {
  return tagOf(["executor", executor.uid, ownership]);
}

/**
 * Whether a header of `If-Match` (RFC 9110 13.1.1) names `tag`; without a header it does. A tag that
 * compression made weak on its way counts, too: it names a state, not the bytes that tell of it.
 */
export function namesTag(header: string | null, tag: string): boolean {
  if (header === null) return true;
  return header.split(",").some((each) => {
    const named = each.trim().replace(/^W\//, "");
    return named === "*" || named === tag;
  });
}

function tagOf(value: unknown): string {
  return `"${createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16)}"`;
}
