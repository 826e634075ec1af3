/** What reading a page anew needs of it. */
export interface RefetchHost<D> {
  /** The page as it is now; undefined when it cannot be had. Does not reject. */
  read(): Promise<D | undefined>;
  take(data: D): void;
  /** Runs it after `ms`. */
  later(run: () => void, ms: number): void;
  readonly signal: AbortSignal;
}

/** Between two readings. */
const REFETCH_MS = 1_000;
/** While it cannot be read: what the stream tells next is about a page that nobody has. */
const AGAIN_MS = 5_000;

/**
 * Makes the function that has a page read anew: one reading at a time, at most once a second, and again
 * until one has come. What is asked for during a reading is read after it.
 */
export function createRefetch<D>({ read, take, later, signal }: RefetchHost<D>): () => void {
  let wanted = false;
  let busy = false;
  const run = async () => {
    if (busy || signal.aborted) return;
    busy = true;
    wanted = false;
    let fresh: D | undefined;
    try {
      fresh = await read();
      if (fresh === undefined) wanted = true;
      else if (!signal.aborted) take(fresh);
    } finally {
      later(() => {
        busy = false;
        if (wanted) void run();
      }, fresh === undefined ? AGAIN_MS : REFETCH_MS);
    }
  };
  return () => {
    wanted = true;
    void run();
  };
}
