import { eventually } from "../support/eventually.ts";
import type { Product } from "./by_product.ts";
import type { Report } from "./report.ts";

/** Stops the product in order: soon, with exit code 0, and with no process of it left. */
export async function checkCleanStop(product: Product, report: Report): Promise<void> {
  await report.check("a clean stop leaves no process", async () => {
    const start = performance.now();
    const code = await product.process.stop(30_000);
    const seconds = (performance.now() - start) / 1000;
    const tail = await product.process.tail(5);
    if (code !== 0) throw new Error(`It ended with exit code ${code}\n${tail}`);
    if (seconds > 12) throw new Error(`It took ${seconds.toFixed(1)} s`);
    await eventually(async () => (await processesIn(product.stateFolder)).length === 0, {
      what: `no process in "${product.stateFolder}"`,
      timeoutMs: 2000,
    });
    return `exit code 0 after ${seconds.toFixed(1)} s`;
  });
}

/** Processes that name the folder in their command line or work in it. */
async function processesIn(folder: string): Promise<number[]> {
  const found: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      const commandLine = await Deno.readTextFile(`/proc/${pid}/cmdline`);
      const workingDirectory = await Deno.readLink(`/proc/${pid}/cwd`);
      if (commandLine.includes(folder) || workingDirectory.startsWith(folder)) found.push(pid);
    } catch {
      // It has ended, or is the kernel's own.
    }
  }
  return found;
}
