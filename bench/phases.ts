import { percentile } from "./report.ts";

/** Where the time goes: the median of each phase of the jobs that the controller has run. */
export async function phasesOf(origin: string): Promise<string> {
  const get = async (path: string) => await (await fetch(`${origin}/api/v1${path}`)).json();
  const { items } = await get("/assignments?limit=100") as { items: { id: string }[] };
  const times = new Map<string, number[]>();
  for (const { id } of items) {
    const { phases } = await get(`/assignments/${id}`) as {
      phases: { name: string; durationMs: number | null }[];
    };
    for (const { name, durationMs } of phases) {
      if (durationMs !== null) times.set(name, [...times.get(name) ?? [], durationMs]);
    }
  }
  const medians = [...times].map(([name, ms]) => `${name} ${percentile(ms, 0.5).toFixed(0)} ms`);
  return medians.join(", ");
}

/** Seconds of work that all processors of this machine have done since it was started. */
export async function machineSeconds(): Promise<number> {
  const [line = ""] = (await Deno.readTextFile("/proc/stat")).split("\n", 1);
  const [user = 0, nice = 0, system = 0, _idle, _wait, irq = 0, softIrq = 0] = line
    .replace(/^cpu +/, "").split(" ").map(Number);
  // In hundredths of a second on every Linux that people use (USER_HZ).
  return (user + nice + system + irq + softIrq) / 100;
}
