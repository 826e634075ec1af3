import type { Clock } from "../../lib/clock.ts";
import type { Entry } from "../entry.ts";
import type { Ledger } from "../ledger.ts";
import type { BackendName } from "../model/ids.ts";
import type { HourView } from "./operating_views.ts";

/** The last hour of each backend, minute by minute, as the ledger saw it. */
export interface HourLog {
  of(name: BackendName): HourView;
}

const MINUTE_MS = 60_000;
const MINUTES = 60;
/** Start times kept of one minute: enough for a median. */
const MOST_STARTS = 200;

/** A minute in which something happened. */
interface Minute {
  /** Waiting before the first event, at most, and after the last. */
  readonly before: number;
  most: number;
  left: number;
  started: number;
  readonly starts: number[];
  ended: number;
  failed: number;
}

/** Follows the ledger until the signal aborts; at most an hour is kept, whatever happens. */
export function createHourLog(
  { ledger, clock }: { readonly ledger: Ledger; readonly clock: Pick<Clock, "now"> },
  signal: AbortSignal,
): HourLog {
  const began = clock.now();
  const logs = { pod: new Map<number, Minute>(), vm: new Map<number, Minute>() };
  const waiting = (name: BackendName) => ledger.inState(name, "stored").size;
  const last = { pod: waiting("pod"), vm: waiting("vm") };
  const started = new WeakSet<Entry>();
  const ended = new WeakSet<Entry>();
  const minuteOf = (at: number) => Math.floor(at / MINUTE_MS);

  const current = (name: BackendName): Minute => {
    const log = logs[name];
    const now = minuteOf(clock.now());
    const known = log.get(now);
    if (known !== undefined) return known;
    for (const at of log.keys()) if (at <= now - MINUTES) log.delete(at);
    const before = last[name];
    const made = {
      before,
      most: before,
      left: before,
      started: 0,
      starts: [],
      ended: 0,
      failed: 0,
    };
    log.set(now, made);
    return made;
  };

  ledger.subscribe((entry) => {
    const { backend } = entry.info;
    const minute = current(backend);
    minute.left = last[backend] = waiting(backend);
    minute.most = Math.max(minute.most, minute.left);
    // A claim that an earlier process recorded is no start of this minute.
    if (entry.state.kind === "claimed" && !entry.restored && !started.has(entry)) {
      started.add(entry);
      minute.started++;
      const took = Math.max(0, entry.stateSince - entry.createdAt);
      if (minute.starts.length < MOST_STARTS) minute.starts.push(took);
    }
    if (entry.state.kind === "cleaned" && !ended.has(entry)) {
      ended.add(entry);
      minute.ended++;
      if (entry.result === "failure") minute.failed++;
    }
  }, signal);

  return {
    of(name) {
      const now = minuteOf(clock.now());
      const log = logs[name];
      const numbers = Array.from({ length: MINUTES }, (_, i) => now - MINUTES + 1 + i);
      // Nothing happens in a minute without an entry: as many wait as after the one before.
      let carried = numbers.flatMap((at) => log.get(at)?.before ?? [])[0] ?? last[name];
      const minutes = numbers.map((number) => {
        const at = new Date(number * MINUTE_MS).toISOString();
        if (number < minuteOf(began)) return { at, ...UNMEASURED };
        const minute = log.get(number);
        const most = minute?.most ?? carried;
        carried = minute?.left ?? carried;
        return {
          at,
          waiting: most,
          started: minute?.started ?? 0,
          startMs: median(minute?.starts ?? []),
          ended: minute?.ended ?? 0,
          failed: minute?.failed ?? 0,
        };
      });
      return { name, since: new Date(began).toISOString(), minutes };
    },
  };
}

const UNMEASURED = { waiting: null, started: null, startMs: null, ended: null, failed: null };

function median(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
}
