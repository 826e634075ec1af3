/**
 * Writes the identity gate and everything it imports as one file, which plain `deno run` takes without
 * node_modules: `deno run -A deploy/bundle_gate.ts FILE`. The executor's image is made with it.
 */
import { bundleProgram } from "../clients/esbuild/program.ts";

const GATE = new URL("../executor/main.ts", import.meta.url);

/** Bundles the gate into `file`; rejects when an import cannot be resolved or `file` not be written. */
export async function bundleGate(file: string): Promise<void> {
  await Deno.writeTextFile(file, await bundleProgram(GATE));
}

if (import.meta.main) {
  const [file, ...more] = Deno.args;
  if (file === undefined || more.length > 0) {
    throw new Error("Bundle the gate: give one argument, the file to write");
  }
  await bundleGate(file);
}
