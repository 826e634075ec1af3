import type { Action, Deadline, VmLabel } from "../../controller/actions/action_kinds.ts";
import type { BackendName } from "../../controller/model/ids.ts";

/** A drain's deadline from a time or from seconds. */
export function deadlineOf(at: string | null, seconds: number | null): Deadline | null {
  if (at !== null) return { kind: "at", at: Date.parse(at) };
  return seconds === null ? null : { kind: "within", ms: seconds * 1_000 };
}

/** The action of a backend's form. */
export function backendFormAction(
  { name: backend, kind }: {
    readonly name: BackendName;
    readonly kind: "cordon" | "drain" | "resume" | "capacity" | "label";
  },
  form: {
    readonly hold: string;
    readonly minutes: string;
    readonly capacity: string;
    readonly label: VmLabel | "";
  },
): Action {
  switch (kind) {
    case "cordon":
    case "resume":
      return { kind, backend };
    case "drain": {
      const minutes = Number(form.minutes);
      const hold = form.hold === "on" || form.hold === "true";
      return { kind, backend, hold, deadline: deadlineOf(null, minutes > 0 ? minutes * 60 : null) };
    }
    case "capacity":
      return { kind, backend, value: form.capacity === "" ? null : Number(form.capacity) };
    case "label":
      return { kind, backend, value: form.label === "" ? null : form.label };
    default:
      return kind satisfies never;
  }
}
