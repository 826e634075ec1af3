import { createLedger, type Ledger } from "../../controller/ledger.ts";
import type { JournalEntry } from "../../controller/journal.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import { DEFAULT_DELAYS } from "../../controller/model/decision.ts";
import {
  type AssignmentId,
  assignmentIdOf,
  type BackendName,
  parseTaskId,
} from "../../controller/model/ids.ts";
import type { Effect } from "../../controller/model/state.ts";
import { createPool } from "../../controller/pool.ts";
import { createFakeClock, type FakeClock } from "../../lib/fake_clock.ts";

/** A ledger whose effects are only written down. */
export interface LedgerWorld {
  readonly clock: FakeClock;
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, ReturnType<typeof createPool>>>;
  readonly effects: (readonly [AssignmentId, Effect["kind"]])[];
  readonly journal: JournalEntry[];
}

/** Makes a {@link LedgerWorld}. */
export function createLedgerWorld(
  options: {
    readonly capacity?: number;
    readonly keepEnded?: number;
    /** How far the ledger's wall clock is ahead; 0 by default. */
    wallAheadMs?(): number;
  } = {},
): LedgerWorld {
  const clock = createFakeClock();
  const makePool = () => createPool({ capacity: () => options.capacity ?? 4, open: () => true });
  const pools = { pod: makePool(), vm: makePool() };
  const effects: (readonly [AssignmentId, Effect["kind"]])[] = [];
  const journal: JournalEntry[] = [];
  const wallAheadMs = options.wallAheadMs ?? (() => 0);
  const ledger = createLedger({
    clock: { ...clock, now: () => clock.now() + wallAheadMs() },
    pools,
    delays: DEFAULT_DELAYS,
    journal: { write: (entry) => void journal.push(entry) },
    run: (entry, effect) => void effects.push([entry.info.id, effect.kind]),
    ...options.keepEnded === undefined ? {} : { keepEnded: options.keepEnded },
  });
  return { clock, ledger, pools, effects, journal };
}

/** An assignment of that number. */
export function infoOf(task: number, over: Partial<AssignmentInfo> = {}): AssignmentInfo {
  const taskId = parseTaskId(String(task));
  if (taskId === undefined) throw new RangeError(`Make assignment: ${task} is no task id`);
  return {
    id: assignmentIdOf(taskId),
    taskId,
    backend: "pod",
    identity: { spiffeId: `spiffe://example.org/ci/o/r/job${task}`, fork: false },
    repository: "o/r",
    job: `job${task}`,
    runId: null,
    giteaUrl: null,
    serverUrl: null,
    ...over,
  };
}
