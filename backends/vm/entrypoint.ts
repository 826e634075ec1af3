import { GATE_FLAGS, GATE_PERMISSIONS } from "../gate_flags.ts";

/**
 * The executor image's program, as its ENTRYPOINT has it: a sandbox of a pool is told what to run. The
 * server's `bootstrap.sh` replaces itself with it, so that no shell keeps the capability.
 */
export const EXECUTOR_ENTRYPOINT: readonly string[] = [
  "/usr/local/bin/deno",
  "run",
  ...GATE_FLAGS,
  ...GATE_PERMISSIONS,
  "/opt/identity-gate/gate.mjs",
];
