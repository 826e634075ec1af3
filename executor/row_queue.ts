import {
  type LogRow,
  LogRowSchema,
  UpdateLogRequestSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { create, fromBinary, toBinary } from "../proto/runtime.ts";
import type { Logger } from "../lib/logger.ts";
import type { ReportSender, Sent } from "./report_sender.ts";
import type { RowSpool } from "./row_spool.ts";

/** How rows go up now. */
export interface RowPhase {
  /** The last row stays: it must go up together with the seal, for Gitea seals by nothing less. */
  readonly holdLast: boolean;
  /** The log may be sealed once all rows are there. */
  readonly seal: boolean;
}

/**
 * The rows of one task on their way to the facade, in the runner's own numbers. What the facade has
 * acknowledged is forgotten, but for the row that sealed the log: a facade that is started anew
 * before the end was accepted may not have it ({@link RowQueue.repeatSeal}).
 */
export interface RowQueue {
  /** Rows stored so far. */
  readonly stored: bigint;
  /** Rows that the facade has. */
  readonly received: bigint;
  /** Rows that the facade has not. */
  readonly waiting: number;
  /** Content of the last row that is not empty; null without rows. */
  readonly lastRow: string | null;
  /** True once the facade has taken the seal. */
  readonly sealed: boolean;
  /** Stores a row; false when the spool is full. */
  add(row: LogRow): boolean;
  /** True when something is to be sent. */
  due(phase: RowPhase): boolean;
  /** Sends the next rows. Rejects with the signal's reason. */
  send(phase: RowPhase, signal: AbortSignal): Promise<Sent<void>>;
  /** A state was not accepted: who takes it next may not have the seal, so that goes up again first. */
  repeatSeal(): void;
}

const MAX_ROWS = 1000;
/** Of one call, so that it passes a reverse proxy that takes 1 MiB. */
const MAX_BYTES = 512 * 1024;
/** Gitea keeps the first 64 KiB of a row; a character has at least one byte. */
const MAX_CHARACTERS = 64 * 1024;

/** Makes an empty {@link RowQueue} on that spool. */
export function createRowQueue(
  deps: {
    readonly taskId: bigint;
    readonly sender: Pick<ReportSender, "updateLog">;
    readonly spool: RowSpool;
    readonly logger: Logger;
  },
): RowQueue {
  const { taskId, sender, spool, logger } = deps;
  let stored = 0n;
  /** Number of the first row in the spool. */
  let first = 0n;
  let lastRow: string | null = null;
  let sealed = false;
  let bound = MAX_BYTES;
  /** Stands for a row that nobody takes. */
  let note: { readonly index: bigint; readonly row: LogRow } | undefined;

  const next = ({ holdLast }: RowPhase): LogRow[] => {
    const most = Math.min(MAX_ROWS, spool.length - (holdLast ? 1 : 0));
    const rows = spool.peek(most, bound).map((bytes) => fromBinary(LogRowSchema, bytes));
    if (note?.index === first && rows.length > 0) rows[0] = note.row;
    return rows;
  };
  const received = (count: number) => {
    spool.drop(count);
    first += BigInt(count);
  };
  /** Halves what goes up in one call; a single row is replaced by a note. */
  const shrink = (rows: readonly LogRow[], why: string): Sent<void> => {
    const [row, ...more] = rows;
    if (row === undefined || (more.length === 0 && note?.index === first)) {
      return { kind: "later", why };
    }
    if (more.length > 0) {
      const bytes = rows.reduce((sum, each) => sum + toBinary(LogRowSchema, each).length, 0);
      bound = Math.max(1, Math.floor(Math.min(bytes, bound) / 2));
    } else {
      logger.warn("a log row is too large for Gitea", { characters: row.content.length });
      const content = `(a row of ${row.content.length} characters is left out: ` +
        "Gitea, or a proxy in front of it, does not take it)";
      note = { index: first, row: create(LogRowSchema, { ...row, content }) };
    }
    return { kind: "accepted", value: undefined };
  };

  return {
    get stored() {
      return stored;
    },
    get received() {
      return sealed ? stored : first;
    },
    get waiting() {
      return sealed ? 0 : spool.length;
    },
    get lastRow() {
      return lastRow;
    },
    get sealed() {
      return sealed;
    },
    add(row) {
      const { content } = row;
      const kept = content.length > MAX_CHARACTERS
        ? create(LogRowSchema, { ...row, content: content.slice(0, MAX_CHARACTERS) })
        : row;
      if (!spool.push(toBinary(LogRowSchema, kept))) return false;
      stored++;
      if (content !== "") lastRow = content;
      return true;
    },
    due({ holdLast, seal }) {
      return !sealed && (seal || spool.length > (holdLast ? 1 : 0));
    },
    async send(phase, signal) {
      const rows = next(phase);
      const noMore = phase.seal && rows.length === spool.length;
      const request = create(UpdateLogRequestSchema, { taskId, index: first, rows, noMore });
      const sent = await sender.updateLog(request, { signal });
      if (sent.kind === "too_large") return shrink(rows, sent.why);
      if (sent.kind === "refused" && sent.sealed) {
        logger.warn("log is sealed, rows are lost", { rows: spool.length, why: sent.why });
        received(spool.length);
        sealed = true;
        return { kind: "accepted", value: undefined };
      }
      if (sent.kind !== "accepted") return sent;
      const end = first + BigInt(rows.length);
      const ack = sent.value.ackIndex > end ? end : sent.value.ackIndex;
      if (ack < first || (ack === first && rows.length > 0)) {
        return { kind: "later", why: `facade has ${ack} of ${end} rows` };
      }
      sealed = noMore && ack === end;
      const count = Number(ack - first);
      received(sealed && count > 0 ? count - 1 : count);
      return { kind: "accepted", value: undefined };
    },
    repeatSeal() {
      sealed = false;
    },
  };
}
