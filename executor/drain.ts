import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { backoffMs } from "../lib/retry.ts";
import type { Sent } from "./report_sender.ts";

/** One call to the facade; `finished` when nothing can follow it. */
export type Step = (signal: AbortSignal) => Promise<Sent<"more" | "finished">>;

/** What there is to deliver. */
export interface DrainSource {
  /** The next call that is due; undefined when there is none now. */
  next(): Step | undefined;
  /** Waits until {@link DrainSource.next} may have one; false when nothing comes any more. */
  more(signal: AbortSignal): Promise<boolean>;
  /** Log rows that wait, for our own log. */
  waitingRows(): number;
}

/** How it ended. `drained`: all was delivered, nothing of it was the last. */
export type DrainEnd =
  | { readonly kind: "finished" }
  | { readonly kind: "drained" }
  | { readonly kind: "refused"; readonly why: string };

const RETRY = { firstMs: 200, maxMs: 5000 };
const REFUSED_RETRY_MS = 2000;

/**
 * Makes one call after the other until the end, each repeated until it is accepted; gives up when the
 * facade has refused for `refusalMs`. Rejects with the signal's reason.
 */
export async function drain(
  source: DrainSource,
  deps: {
    readonly clock: Clock;
    readonly random: () => number;
    readonly logger: Logger;
    readonly refusalMs: number;
    readonly signal: AbortSignal;
  },
): Promise<DrainEnd> {
  const { clock, signal } = deps;
  let failures = 0;
  let refusedSince: number | undefined;
  while (true) {
    signal.throwIfAborted();
    const send = source.next();
    if (send === undefined) {
      if (!await source.more(signal)) return { kind: "drained" };
      continue;
    }
    const sent = await send(signal);
    switch (sent.kind) {
      case "accepted":
        if (sent.value === "finished") return { kind: "finished" };
        failures = 0;
        refusedSince = undefined;
        break;
      case "later":
      case "too_large":
        failures++;
        deps.logger.warn("facade does not take a report now", {
          why: sent.why,
          attempt: failures,
          rows: source.waitingRows(),
        });
        await clock.sleep(backoffMs(failures, RETRY, deps.random), signal);
        break;
      case "refused":
        // A controller that has just started may not know the claim before our heartbeat.
        refusedSince ??= clock.monotonic();
        if (clock.monotonic() - refusedSince >= deps.refusalMs) {
          return { kind: "refused", why: sent.why };
        }
        await clock.sleep(REFUSED_RETRY_MS, signal);
        break;
      default:
        sent satisfies never;
    }
  }
}
