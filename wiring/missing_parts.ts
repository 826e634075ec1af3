import type { Config } from "../controller/config/config.ts";
import type { Fault } from "../controller/config/reader.ts";

/**
 * What a configuration asks for and this version does not have: refused, rather than something else
 * being run in its place. Each names the variable and the ways out.
 */
export function missingParts(
  { executors, components }: Pick<Config, "executors" | "components">,
): Fault[] {
  if (executors !== "real" || !components.has("vm-worker")) return [];
  return [{
    variable: "COMPONENTS",
    given: [...components].join(","),
    allowed: "scheduler,pod-worker; or EXECUTORS=process, which isolates nothing",
    message: "COMPONENTS must not include vm-worker: this version has no backend for OpenSandbox",
  }];
}
