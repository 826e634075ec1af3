import type { Clock } from "./clock.ts";

/** How a server that we depend on has answered lately. Times are milliseconds since the epoch. */
export interface SourceHealth {
  /** `degraded`: a call failed or a watch is interrupted, but a call succeeded less than 10 s ago. */
  readonly state: "unknown" | "up" | "degraded" | "down";
  readonly since: number;
  /** Kept for a minute after things went well again; null if there is none. */
  readonly lastError: string | null;
  readonly lastOkAt: number | null;
}

/** Takes what calls and watches of one client meet, and says how its server does. */
export interface HealthKeeper {
  /** The server answered, if only by refusing one request. */
  ok(): void;
  failed(error: Error): void;
  /** The watch of `source` cannot go on now; null = it goes on again. */
  interrupted(source: string, error: Error | null): void;
  status(): SourceHealth;
}

const FRESH_MS = 10_000;
const KEEP_ERROR_MS = 60_000;

/** Makes a {@link HealthKeeper}; nothing is asked, so that a client without calls stays `unknown`. */
export function createHealthKeeper(clock: Clock): HealthKeeper {
  const start = clock.now();
  const interrupted = new Map<string, { readonly since: number; readonly text: string }>();
  let okAt: number | null = null;
  let healthySince = start;
  let failingSince: number | null = null;
  let error: { readonly text: string; readonly at: number } | null = null;

  return {
    ok() {
      const now = clock.now();
      if (okAt === null || failingSince !== null) healthySince = now;
      failingSince = null;
      okAt = now;
    },
    failed({ message }) {
      failingSince ??= clock.now();
      error = { text: message, at: clock.now() };
    },
    interrupted(source, reason) {
      const now = clock.now();
      const known = interrupted.get(source);
      if (reason === null) {
        if (known === undefined) return;
        interrupted.delete(source);
        error = { text: known.text, at: now };
        if (interrupted.size === 0) healthySince = now;
      } else {
        interrupted.set(source, { since: known?.since ?? now, text: reason.message });
      }
    },
    status() {
      const now = clock.now();
      const [broken] = interrupted.values();
      const fresh = failingSince !== null || (error !== null && now - error.at < KEEP_ERROR_MS);
      const lastError = (fresh ? error?.text : undefined) ?? broken?.text ?? null;
      const common = { lastError, lastOkAt: okAt };
      const downFrom = okAt === null ? -Infinity : okAt + FRESH_MS;
      if (failingSince !== null && now >= downFrom) {
        return { state: "down", since: Math.max(downFrom, failingSince), ...common };
      }
      if (failingSince !== null || broken !== undefined) {
        const since = Math.min(failingSince ?? Infinity, broken?.since ?? Infinity);
        return { state: "degraded", since, ...common };
      }
      return okAt === null
        ? { state: "unknown", since: start, ...common }
        : { state: "up", since: healthySince, ...common };
    },
  };
}
