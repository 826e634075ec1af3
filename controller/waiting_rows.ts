import type { Clock } from "../lib/clock.ts";
import { oneLine } from "../lib/one_line.ts";
import { create, timestampFromMs } from "../proto/runtime.ts";
import { LogRowSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Entry } from "./entry.ts";
import type { Gitea } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import type { BackendName } from "./model/ids.ts";
import type { Pool } from "./pool.ts";

/** Tells a waiting job's author in the job's own log why it does not start yet. */
export interface WaitingRows {
  /**
   * Adds a row if the words have changed and a minute has passed since the last one. Rejects with
   * `GiteaError`; the row is then tried again with the next heartbeat.
   */
  write(entry: Entry, signal: AbortSignal): Promise<void>;
}

/** At most one row in this time. */
const EVERY_MS = 60_000;

interface Said {
  readonly text: string;
  readonly at: number;
  /** Rows at Gitea after it. */
  readonly ack: bigint;
}

/** Makes {@link WaitingRows}. What was said is forgotten with the entry. */
export function createWaitingRows(deps: {
  readonly clock: Clock;
  readonly gitea: Pick<Gitea, "updateLog">;
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, Pool>>;
}): WaitingRows {
  const { clock, gitea } = deps;
  const said = new WeakMap<Entry, Said>();
  return {
    async write(entry, signal) {
      const before = said.get(entry);
      if (before !== undefined && clock.monotonic() - before.at < EVERY_MS) return;
      const text = wordsFor(entry, deps);
      if (text === null || text === before?.text) return;
      const taskId = BigInt(entry.info.taskId);
      const index = before?.ack ??
        (await gitea.updateLog({ taskId, index: 0n, rows: [], noMore: false }, { signal }))
          .ackIndex;
      const rows = [create(LogRowSchema, { time: timestampFromMs(clock.now()), content: text })];
      const { ackIndex } = await gitea.updateLog({ taskId, index, rows, noMore: false }, {
        signal,
      });
      said.set(entry, { text, at: clock.monotonic(), ack: ackIndex });
    },
  };
}

/** One sentence for the job's author; null when it does not wait. */
function wordsFor(
  entry: Entry,
  deps: {
    readonly ledger: Pick<Ledger, "inState">;
    readonly pools: Readonly<Record<BackendName, Pool>>;
  },
): string | null {
  const { backend } = entry.info;
  const why = entry.reason === null ? "" : `: ${oneLine(entry.reason.detail)}`;
  switch (entry.state.kind) {
    case "stored": {
      const waiting = deps.ledger.inState(backend, "stored");
      const place = entry.sequence ?? Infinity;
      let position = 1;
      for (const other of waiting) if ((other.sequence ?? Infinity) < place) position++;
      const pool = deps.pools[backend];
      const slots = `${pool.holders().size} of ${pool.capacity()} slots in use`;
      return `Waiting for "${backend}", position ${position} of ${waiting.size}, ${slots}${why}`;
    }
    case "parked":
      return `Waiting for "${backend}", to be tried again later${why}`;
    case "admitted":
    case "starting":
    case "ready":
      return `Starting on "${backend}"${why}${failureBefore(entry)}`;
    case "claimed":
    case "running":
    case "settling":
    case "terminal":
    case "cleaned":
      return null;
    default:
      return entry.state satisfies never;
  }
}

/** Why it starts again, unless that has just been said. */
function failureBefore({ failed, reason }: Entry): string {
  return failed === null || failed === reason?.detail
    ? ""
    : `; the executor before it failed: ${oneLine(failed)}`;
}
