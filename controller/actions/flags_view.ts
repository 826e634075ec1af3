import { flagView, noteView } from "../views/backend_view.ts";
import type { ControlFlags } from "../records.ts";
import { isoOrNull } from "../views/view_of.ts";

/** Flags as answers and audit show them: the names of the API's backend, times as texts. */
export function flagsView({ cordon, drain, capacity, label }: ControlFlags) {
  return {
    cordoned: cordon === null ? null : noteView(cordon),
    drain: drain === null
      ? null
      : { ...noteView(drain), deadline: isoOrNull(drain.deadline), hold: drain.hold },
    overrides: { capacity: flagView(capacity), label: flagView(label) },
  };
}
