/** Deno's flags for the identity gate, wherever it runs: what it needs is in its bundle. */
export const GATE_FLAGS: readonly string[] = [
  "--quiet",
  "--no-prompt",
  "--no-config",
  "--no-lock",
  "--no-remote",
  "--no-npm",
  "--cached-only",
  // Small young generation: the gate holds little for long.
  "--v8-flags=--max-semi-space-size=1,--max-old-space-size=256",
];

/** What the gate may do: files, network and the runner itself; its user or its guest is the bound. */
export const GATE_PERMISSIONS: readonly string[] = [
  "--allow-net",
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-run",
];
