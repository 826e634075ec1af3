/** Bytes that a row takes beside its own: in the spool's file they say how long it is. */
export const PER_ROW = 4;

/** Rows in memory, in order. */
export interface Run {
  readonly length: number;
  /** What they take, with a little for each of them. */
  readonly bytes: number;
  push(row: Uint8Array): void;
  /** Empty without rows. */
  last(): Uint8Array;
  rows(): readonly Uint8Array[];
  /** The first rows, at least one if there is one, within both bounds. */
  peek(maxRows: number, maxBytes: number): readonly Uint8Array[];
  drop(count: number): void;
}

/** Makes an empty {@link Run}; dropped rows are cut off in blocks, so that a drop costs nothing per row left. */
export function createRun(): Run {
  let rows: Uint8Array[] = [];
  let from = 0;
  let bytes = 0;
  return {
    get length() {
      return rows.length - from;
    },
    get bytes() {
      return bytes;
    },
    push(row) {
      rows.push(row);
      bytes += row.length + PER_ROW;
    },
    last: () => rows.at(-1) ?? new Uint8Array(),
    rows: () => from === 0 ? rows : rows.slice(from),
    /** The first rows, at least one if there is one, within both bounds. */
    peek(maxRows, maxBytes) {
      let end = from;
      for (let size = 0; end < rows.length && end - from < maxRows; end++) {
        size += rows[end]?.length ?? 0;
        if (size > maxBytes && end > from) break;
      }
      return rows.slice(from, end);
    },
    drop(count) {
      for (const row of rows.slice(from, from + count)) bytes -= row.length + PER_ROW;
      from = Math.min(rows.length, from + count);
      if (from > 1024 || from === rows.length) {
        rows = rows.slice(from);
        from = 0;
      }
    },
  };
}
