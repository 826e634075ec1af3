import { createLeaderKey } from "../clients/nats/leader_key.ts";
import type { Leadership } from "../controller/leadership/leadership.ts";
import { createSoloLeader } from "../controller/leadership/solo_leader.ts";
import { together } from "../lib/together.ts";
import type { Connections } from "./connections.ts";
import type { Surroundings } from "./controller.ts";
import type { Parts } from "./parts.ts";

/** Another controller leads: this one has stopped acting and must end. */
export class LeadershipLost extends Error {
  override readonly name = "LeadershipLost";

  /** `detail` says what was seen. */
  constructor(detail: string) {
    super(`scheduler leadership lost: ${detail}`);
  }
}

/**
 * The right to act, and its two ends: `lost` (another leads, or may: act no more, not even to clean up)
 * and `resigned` (still ours: stop in order, then give it back).
 */
export interface Leading {
  readonly leadership: Leadership;
  /** Aborts with {@link LeadershipLost} when it is over; nothing may be done after that. */
  readonly lost: AbortSignal;
  /**
   * Throws while this process may not act: after {@link fence}, and whenever the Lease or key is not surely
   * held at this moment. It is the one that all guarded ports and clients ask.
   */
  guard(): void;
  /**
   * Says that another leads, whoever has found it out: the elector, a record with a newer epoch, a bucket
   * that is gone. Aborts `lost`, and tells `onLost` of the surroundings; only the first call counts.
   */
  fence(detail: string): void;
  /** Aborts when this process is to give the lead away in order, with {@link LeadershipLost}. */
  readonly resigned: AbortSignal;
  /**
   * Gives it away: what acts is stopped as for a clean stop, then another replica may lead. `onLost` is told
   * here, too, so that the end of the process is bounded in both cases.
   */
  resign(detail: string): void;
}

/**
 * Who decides about the lead, by configuration: a Lease, or a key beside the records. Contends for nothing
 * yet: that is `leadership.acquire()`. Disposing `stack` gives the lead back.
 */
export function createLeading(
  parts: Parts,
  { nats }: Pick<Connections, "nats">,
  around: Surroundings & { readonly stack: AsyncDisposableStack },
): Leading {
  const { clock, logger, sources, stack, config } = around;
  const fenced = new AbortController();
  const resigned = new AbortController();
  const fence = (detail: string) => {
    if (fenced.signal.aborted) return;
    fenced.abort(new LeadershipLost(detail));
    around.onLost?.();
  };
  const { self } = sources;
  const address = config.admin.advertise;
  const leadership = stack.use(
    parts.elect?.({ self, address, onLost: fence }) ??
      createSoloLeader({
        key: createLeaderKey(nats, { clock }),
        clock,
        logger,
        self,
        address,
        place: parts.place ?? null,
        onLost: fence,
      }),
  );
  sources.leadership = () => leadership.status();
  return {
    leadership,
    lost: fenced.signal,
    guard() {
      fenced.signal.throwIfAborted();
      leadership.check();
    },
    fence,
    resigned: resigned.signal,
    resign(detail) {
      if (resigned.signal.aborted) return;
      resigned.abort(new LeadershipLost(detail));
      // Whoever is to lead next does not wait for a server that does not answer.
      around.onLost?.();
    },
  };
}

/**
 * Acts while the lead is held, and holds it until nothing acts any more, not only until the stop begins.
 * When it cannot be held, or told of, any more, what acts is stopped, its end is awaited, and the failure
 * is thrown.
 */
export async function actWhileLeading(
  leadership: Pick<Leadership, "hold">,
  act: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  await together([
    () => leadership.hold(ended.signal),
    (stop) => act(stop).finally(() => ended.abort()),
  ], signal);
}
