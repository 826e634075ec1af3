/** Who leads, as far as this process knows. Times are milliseconds since the epoch. */
export interface LeadershipStatus {
  /** Null while nobody is known to lead. */
  readonly holder: string | null;
  readonly leading: boolean;
  readonly acquiredAt: number | null;
  /** When the holder was last seen to be alive. */
  readonly renewedAt: number | null;
  /** A holder that is silent for longer is taken for dead; null when that is not known. */
  readonly leaseSeconds: number | null;
  /** Where the holder's pages are reached (its `ADMIN_ADVERTISE`); absent when it has not said. */
  readonly address?: string | null;
  /** How often the right has changed hands; absent where nobody counts. */
  readonly transitions?: number | null;
}

/**
 * The right to act: everything that fetches, stores, creates or settles waits for {@link acquire} and
 * ends with {@link hold}. Disposing gives the right back at once, so that the next one need not wait.
 */
export interface Leadership extends AsyncDisposable {
  /** Waits until this process may act. Rejects with the signal's reason only. */
  acquire(signal: AbortSignal): Promise<void>;
  /**
   * Keeps the right until aborted, then resolves. When another process has it, `onLost` is told once
   * and this resolves: nothing may be done any more.
   */
  hold(signal: AbortSignal): Promise<void>;
  /** Throws while it is not sure that this process still leads, e.g. when it was stopped and woken. */
  check(): void;
  status(): LeadershipStatus;
}
