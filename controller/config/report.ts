import type { Fault } from "./reader.ts";

/** Exit code of a process whose configuration is wrong. */
export const CONFIG_EXIT_CODE = 2;

/** All faults as text for a terminal or a Pod's log; ends with a newline. */
export function formatFaults(faults: readonly Fault[]): string {
  const count = faults.length === 1 ? "one setting is" : `${faults.length} settings are`;
  const parts = faults.map(({ variable, given, allowed, message }) =>
    `  ${message}\n      variable  ${variable}\n      given     ${given}\n      allowed   ${allowed}\n`
  );
  return `Cannot start: ${count} wrong\n\n${parts.join("\n")}\n`;
}
