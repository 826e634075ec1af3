import { systemClock } from "../../lib/clock.ts";

/** Looks at the controller from outside, all the time. */
export interface Watch extends AsyncDisposable {
  /** Who waited without a reason. */
  readonly complaints: readonly string[];
  /** How many waiting ones were looked at. */
  readonly looks: number;
  /** Resident memory of the controller's process, MiB, with when it was looked at. */
  readonly memory: readonly { readonly at: number; readonly mib: number }[];
}

interface Assignment {
  readonly id: string;
  readonly state: string;
  readonly reason: { readonly detail: string } | null;
}

const WAITING = ["stored", "parked", "admitted", "starting", "ready"];
const EVERY_MS = 500;

/** Watches until disposed; while the controller is away there is nothing to see. */
export function startWatch(
  controller: { get<T>(path: string): Promise<T>; pid(): number | null },
): Watch {
  const stop = new AbortController();
  const complaints = new Set<string>();
  const memory: { at: number; mib: number }[] = [];
  let looks = 0;
  const look = async () => {
    for (const state of WAITING) {
      const { items } = await controller.get<{ readonly items: readonly Assignment[] }>(
        `/api/v1/assignments?state=${state}&limit=200`,
      );
      looks += items.length;
      for (const { id, reason } of items) {
        if (reason === null || reason.detail === "") complaints.add(`${id} is ${state}`);
      }
    }
  };
  const weigh = async () => {
    const pid = controller.pid();
    if (pid === null) return;
    const status = await Deno.readTextFile(`/proc/${pid}/status`);
    const kib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? NaN);
    if (!Number.isNaN(kib)) memory.push({ at: performance.now(), mib: kib / 1024 });
  };
  const watching = (async () => {
    while (!stop.signal.aborted) {
      await weigh().catch(() => {});
      await look().catch(() => {});
      await systemClock.sleep(EVERY_MS, stop.signal).catch(() => {});
    }
  })();
  return {
    get complaints() {
      return [...complaints];
    },
    get looks() {
      return looks;
    },
    memory,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
    },
  };
}
