import { eventually } from "../support/eventually.ts";
import { join } from "node:path";

/**
 * Makes every executor that starts from now on end at once, before it can claim anything: the gate's
 * program is replaced, as a broken image would. Disposing repairs it.
 */
export async function breakGate(runtimeDir: string): Promise<AsyncDisposable> {
  const folder = join(runtimeDir, "executor");
  const file = await eventually(async () => {
    for await (const { name } of Deno.readDir(folder)) {
      if (/^gate-[0-9a-f]+\.mjs$/.test(name)) return join(folder, name);
    }
    return undefined;
  }, { what: "the gate's program", timeoutMs: 5_000 });
  const sound = await Deno.readFile(file);
  const replace = async (content: Uint8Array<ArrayBuffer>) => {
    // In one move: an executor may be reading it.
    const part = `${file}.${crypto.randomUUID()}`;
    await Deno.writeFile(part, content, { mode: 0o644 });
    await Deno.rename(part, file);
  };
  await replace(new TextEncoder().encode("Deno.exit(1);\n"));
  return { [Symbol.asyncDispose]: () => replace(sound) };
}
