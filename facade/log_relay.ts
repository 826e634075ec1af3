import { type Gitea, GiteaError } from "../controller/gitea.ts";
import type { Clock } from "../lib/clock.ts";
import { create, timestampFromMs } from "../proto/runtime.ts";
import {
  type LogRow,
  LogRowSchema,
  type UpdateLogRequest,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { toGitea, toRunner } from "./offsets.ts";

/**
 * The log of one claimed task on its way to Gitea. Calls must not overlap.
 *
 * Gitea 1.26 seals a log only by a call that brings a row; an empty one leaves the whole log in its
 * database for good. So the row that comes with `no_more` waits for the seal; where there is none,
 * an empty row goes with it, as the official runner does.
 */
export interface LogRelay {
  /**
   * Forwards rows in the runner's numbers; resolves to how many there are now. Until the outcome is
   * `settled`, `no_more` and the row that came with it are held back. Throws `GiteaError`.
   */
  forward(
    request: Pick<UpdateLogRequest, "index" | "rows" | "noMore">,
    options: { readonly settled: boolean; readonly signal: AbortSignal },
  ): Promise<bigint>;
  /** Seals the log, after a last row that gives the `reason` if there is one. Throws `GiteaError`. */
  seal(reason: string | null, signal: AbortSignal): Promise<void>;
  /** True once the runner has said that no more rows come. */
  readonly isComplete: boolean;
  /** Content of the last row that is not blank; null when none was seen by this process. */
  readonly lastRow: string | null;
}

type Rows = Pick<UpdateLogRequest, "index" | "rows">;

/** Makes the log of the task whose first row is Gitea's row `offset`. */
export function createLogRelay(
  deps: { readonly gitea: Gitea; readonly clock: Clock },
  task: { readonly taskId: bigint; readonly offset: bigint },
): LogRelay {
  const { gitea, clock } = deps;
  const { taskId, offset } = task;
  let isComplete = false;
  let isSealed = false;
  /** The runner's last row, acknowledged to it, not yet at Gitea. In the runner's numbers. */
  let kept: { readonly index: bigint; readonly row: LogRow } | null = null;
  let last: { readonly index: bigint; readonly content: string } | null = null;

  const remember = ({ index, rows }: Rows) => {
    const at = rows.findLastIndex((row) => row.content.trim() !== "");
    const row = rows[at];
    const number = index + BigInt(at);
    if (row !== undefined && (last === null || number >= last.index)) {
      last = { index: number, content: row.content };
    }
  };
  /** Sends rows that follow each other; resolves to Gitea's count in the runner's numbers. */
  const send = async (
    { index, rows }: Rows,
    signal: AbortSignal,
  ): Promise<bigint> => {
    const answer = await gitea.updateLog(
      { taskId, index: toGitea(index, offset), rows, noMore: false },
      { signal },
    );
    const ack = toRunner(answer.ackIndex, offset);
    if (kept !== null && ack > kept.index) kept = null;
    return ack;
  };
  const seal = async (reason: string | null, signal: AbortSignal) => {
    if (isSealed) return;
    try {
      const { ackIndex } = await gitea.updateLog({ taskId, index: 0n, rows: [], noMore: false }, {
        signal,
      });
      const rows: LogRow[] = [];
      if (kept !== null && ackIndex === toGitea(kept.index, offset)) rows.push(kept.row);
      if (reason !== null || rows.length === 0) {
        const time = timestampFromMs(clock.now());
        rows.push(create(LogRowSchema, { time, content: reason ?? "" }));
      }
      await gitea.updateLog({ taskId, index: ackIndex, rows, noMore: true }, { signal });
    } catch (error) {
      if (!(error instanceof GiteaError) || error.code !== "log_sealed") throw error;
    }
    isSealed = true;
    kept = null;
  };

  return {
    seal,
    get isComplete() {
      return isComplete;
    },
    get lastRow() {
      return last?.content ?? null;
    },
    async forward(request, { settled, signal }) {
      const { rows, index, noMore } = request;
      const end = index + BigInt(rows.length);
      const final = noMore ? rows.at(-1) : undefined;
      const others = final === undefined ? rows : rows.slice(0, -1);
      // The row that was kept goes before those that follow it after all.
      const before = kept !== null && rows.length > 0 && index === kept.index + 1n ? kept : null;
      let ack = await send(
        before === null
          ? { index, rows: others }
          : { index: before.index, rows: [before.row, ...others] },
        signal,
      );
      if (final !== undefined && ack === end - 1n) kept = { index: ack, row: final };
      if (kept !== null && ack === kept.index) ack++;
      if (ack < end) return ack;
      remember(request);
      if (noMore) isComplete = true;
      if (noMore && settled) await seal(null, signal);
      return ack;
    },
  };
}
