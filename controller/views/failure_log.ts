import type { Clock } from "../../lib/clock.ts";
import type { BackendName } from "../model/ids.ts";
import { type ReasonCode, REASONS } from "../model/reason.ts";

/** Failures of the last hour by reason; as many as there are minutes and reasons, whatever happens. */
export interface FailureLog {
  add(backend: BackendName, code: ReasonCode): void;
  /** Counts of the last hour; reasons without any are absent. */
  of(backend: BackendName): Readonly<Partial<Record<ReasonCode, number>>>;
}

type Counts = Partial<Record<ReasonCode, number>>;

const MINUTE_MS = 60_000;
const MINUTES = 60;

/** Makes an empty {@link FailureLog}. */
export function createFailureLog(clock: Pick<Clock, "monotonic">): FailureLog {
  const minutes = { pod: new Map<number, Counts>(), vm: new Map<number, Counts>() };
  const minute = () => Math.floor(clock.monotonic() / MINUTE_MS);
  const current = (backend: BackendName): Map<number, Counts> => {
    const oldest = minute() - MINUTES + 1;
    for (const at of minutes[backend].keys()) if (at < oldest) minutes[backend].delete(at);
    return minutes[backend];
  };
  return {
    add(backend, code) {
      const counts = current(backend).get(minute()) ?? {};
      counts[code] = (counts[code] ?? 0) + 1;
      minutes[backend].set(minute(), counts);
    },
    of(backend) {
      const sum: Counts = {};
      for (const counts of current(backend).values()) {
        for (const [code, count] of entriesOf(counts)) sum[code] = (sum[code] ?? 0) + count;
      }
      return sum;
    },
  };
}

function entriesOf(counts: Counts): [ReasonCode, number][] {
  return REASONS.flatMap((code) => counts[code] === undefined ? [] : [[code, counts[code]]]);
}
