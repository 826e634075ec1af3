/**
 * The executor image's program, as its ENTRYPOINT has it: a sandbox of a pool is told what to run. The
 * server's `bootstrap.sh` replaces itself with it, so that no shell keeps the capability.
 */
export const EXECUTOR_ENTRYPOINT: readonly string[] = [
  "/usr/local/bin/deno",
  "run",
  "--quiet",
  "--no-prompt",
  "--no-config",
  "--no-lock",
  "--no-remote",
  "--no-npm",
  "--cached-only",
  "--v8-flags=--max-semi-space-size=1,--max-old-space-size=256",
  "--allow-net",
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-run",
  "/opt/identity-gate/gate.mjs",
];
