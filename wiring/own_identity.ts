import type { SvidSource } from "../clients/spiffe/workload_api.ts";
import type { WaitingReason } from "../controller/admission.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";

/** Whether executors can reach a facade of this process: they refuse one whose SVID is over. */
export interface OwnIdentity {
  /** Why none can; null when they can. */
  cutOff(): WaitingReason | null;
  /** Calls `changed` each time the answer has changed, within a second, until the signal aborts. */
  watch(changed: () => void, signal: AbortSignal): Promise<void>;
}

const LOOK_MS = 1_000;

/** Makes {@link OwnIdentity} of the source of our SVID. */
export function createOwnIdentity(
  svids: Pick<SvidSource, "current" | "status">,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): OwnIdentity {
  /** Somebody was told that none can reach it, and not yet that they can again. */
  let told = false;
  const cutOff = (): WaitingReason | null => {
    const svid = svids.current();
    if (svid !== null && svid.expiresAt > clock.now()) return null;
    told = true;
    const { lastError } = svids.status();
    const why = lastError === null ? "" : `: ${lastError}`;
    return {
      code: "identity_pending",
      detail: `the controller has no valid SVID, so that no executor would talk to it${why}`,
    };
  };
  return {
    cutOff,
    async watch(changed, signal) {
      let before = false;
      while (!signal.aborted) {
        const now = cutOff();
        const turned = (now !== null) !== before;
        before = now !== null;
        if (turned && now === null) logger.info("executors can reach the facade again");
        if (turned && now !== null) {
          logger.error("no executor can reach the facade", { detail: now.detail });
        }
        // Also when it was so between two looks alone: who has asked then waits for a word.
        if (turned || (now === null && told)) {
          told = now !== null;
          changed();
        }
        await clock.sleep(LOOK_MS, signal).catch(() => {});
      }
    },
  };
}
