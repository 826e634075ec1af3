/**
 * What runs in a Pod of the chaos in place of gate and runner: the light gate of `tests/chaos/`, with the
 * launch environment and the identity of its Pod. Prints one JSON line for each phase. SIGUSR1 kills its
 * runner; every other signal ends it at this very moment.
 */
import { EXIT } from "../../executor/exit_codes.ts";
import { parseLaunch } from "../../executor/launch.ts";
import { runLightGate } from "../chaos/light_gate.ts";

async function main(): Promise<number> {
  const print = (fields: Readonly<Record<string, unknown>>) => {
    const line = JSON.stringify({ at: Date.now(), ...fields });
    Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
  };
  print({ phase: "before" });
  const parsed = parseLaunch(Deno.env.toObject());
  if (parsed.kind === "faults") {
    print({ faults: parsed.faults });
    return EXIT.launch;
  }
  const runner = new AbortController();
  Deno.addSignalListener("SIGUSR1", () => {
    runner.abort(new DOMException("Killed", "AbortError"));
  });
  const outcome = await runLightGate(parsed.launch, {
    killed: new AbortController().signal,
    runnerKilled: runner.signal,
    onPhase: (phase) => print({ phase }),
  });
  print({ phase: "end", ...outcome });
  return outcome.code;
}

if (import.meta.main) Deno.exit(await main());
