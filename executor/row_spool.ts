import { createRun, PER_ROW } from "./row_run.ts";

/**
 * A queue of log rows, each as bytes. What does not fit into memory goes to a file in the middle:
 *
 *   push --> tail (memory) --> file --> head (memory) --> peek, drop
 *
 * The file is only read forwards and starts again when it is empty. Calls never interleave: all of it
 * is synchronous.
 */
export interface RowSpool extends Disposable {
  /** Rows that wait. */
  readonly length: number;
  /** Rows that wait in the file. */
  readonly spilled: number;
  /** Adds a row; false, and nothing is stored, when the file is full or cannot be written now. */
  push(row: Uint8Array): boolean;
  /** The first rows, at least one if there is one, within both bounds. They stay. */
  peek(maxRows: number, maxBytes: number): readonly Uint8Array[];
  /** Forgets the first `count` rows. */
  drop(count: number): void;
}

/** Bounds, bytes. */
export interface RowSpoolOptions {
  /** Made with mode 0600 when it is needed first; removed by dispose. */
  readonly file: string;
  /** In memory, head and tail together; 4 MiB by default. */
  readonly memoryBytes?: number;
  /** In the file; 1 GiB by default. */
  readonly fileBytes?: number;
}

/** Makes an empty {@link RowSpool}. Throws an `Error` from `peek` and `drop` when the file cannot be read. */
export function createRowSpool(options: RowSpoolOptions): RowSpool {
  const half = Math.max(1, (options.memoryBytes ?? 4 * 1024 * 1024) / 2);
  const limit = options.fileBytes ?? 1024 * 1024 * 1024;
  const head = createRun();
  let tail = createRun();
  let file: Deno.FsFile | undefined;
  let readAt = 0;
  let writeAt = 0;
  let spilled = 0;

  /** Writes the tail and a row behind it; false, and nothing has changed, when the disk is full. */
  const spill = (rows: readonly Uint8Array[]): boolean => {
    const block = encode(rows);
    try {
      file ??= Deno.openSync(options.file, { read: true, write: true, create: true, mode: 0o600 });
      file.seekSync(writeAt, Deno.SeekMode.Start);
      for (let done = 0; done < block.length;) done += file.writeSync(block.subarray(done));
    } catch {
      return false;
    }
    writeAt += block.length;
    spilled += rows.length;
    tail = createRun();
    return true;
  };
  const refill = () => {
    if (head.length > 0) return;
    while (file !== undefined && spilled > 0 && head.bytes < half) {
      head.push(readRow(file, readAt));
      readAt += PER_ROW + head.last().length;
      spilled--;
    }
    if (spilled === 0 && writeAt > 0) {
      file?.truncateSync(0);
      readAt = writeAt = 0;
    }
    if (head.length === 0) {
      for (const row of tail.rows()) head.push(row);
      tail = createRun();
    }
  };

  return {
    get length() {
      return head.length + spilled + tail.length;
    },
    get spilled() {
      return spilled;
    },
    push(row) {
      if (writeAt + tail.bytes + row.length + PER_ROW > limit) return false;
      if (spilled === 0 && tail.length === 0 && head.bytes < half) {
        head.push(row);
        return true;
      }
      if (tail.bytes + row.length + PER_ROW >= half) return spill([...tail.rows(), row]);
      tail.push(row);
      return true;
    },
    peek(maxRows, maxBytes) {
      refill();
      return head.peek(maxRows, maxBytes);
    },
    drop(count) {
      for (let left = count; left > 0;) {
        refill();
        const now = Math.min(left, head.length);
        if (now === 0) break;
        head.drop(now);
        left -= now;
      }
    },
    [Symbol.dispose]() {
      if (file === undefined) return;
      file.close();
      file = undefined;
      Deno.removeSync(options.file);
    },
  };
}

function encode(rows: readonly Uint8Array[]): Uint8Array {
  const block = new Uint8Array(rows.reduce((sum, row) => sum + PER_ROW + row.length, 0));
  const view = new DataView(block.buffer);
  let at = 0;
  for (const row of rows) {
    view.setUint32(at, row.length);
    block.set(row, at + PER_ROW);
    at += PER_ROW + row.length;
  }
  return block;
}

function readRow(file: Deno.FsFile, at: number): Uint8Array {
  const size = new DataView(readExactly(file, at, PER_ROW).buffer).getUint32(0);
  return readExactly(file, at + PER_ROW, size);
}

function readExactly(file: Deno.FsFile, at: number, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  file.seekSync(at, Deno.SeekMode.Start);
  for (let done = 0; done < size;) {
    const read = file.readSync(bytes.subarray(done));
    if (read === null) throw new Error(`Read spooled log rows: file ends at byte ${at + done}`);
    done += read;
  }
  return bytes;
}
