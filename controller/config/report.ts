import type { Fault } from "./reader.ts";

/** Exit code of a process whose configuration is wrong. */
export const CONFIG_EXIT_CODE = 2;

/**
 * All faults as text for a terminal or a Pod's log; ends with a newline. `warnings` stand below them: a
 * missing variable is often there under a name with a typing error.
 */
export function formatFaults(faults: readonly Fault[], warnings: readonly string[] = []): string {
  const count = faults.length === 1 ? "one setting is" : `${faults.length} settings are`;
  const parts = faults.map(({ variable, given, allowed, message }) =>
    `  ${message}\n      variable  ${variable}\n      given     ${given}\n      allowed   ${allowed}\n`
  );
  const also = warnings.map((warning) => `  ${warning}\n`).join("");
  return `Cannot start: ${count} wrong\n\n${parts.join("\n")}\n${also === "" ? "" : `${also}\n`}`;
}
