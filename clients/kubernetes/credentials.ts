import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { type Material, type ReadMaterial, sameMaterial } from "./material.ts";

/** Token, trust and client certificate, as they are on disk: kubelet and issuers replace them there. */
export interface Credentials {
  /** Read less than a minute ago. Never rejects: what cannot be read now is used as it was. */
  current(): Promise<Material>;
  /**
   * Reads again at once, because `used` was refused: what is there now, or null when it is no other.
   * Calls at the same time share one read, and there is at most one such read a second.
   */
  renew(used: Material): Promise<Material | null>;
}

/** A rotated token is valid beside its successor far longer (a service account's: 20 % of its life). */
const KEPT_MS = 60_000;
const SPACING_MS = 1_000;

/** Reads the first {@link Material}; rejects when that fails. The server's address stays for good. */
export async function createCredentials(
  read: ReadMaterial,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<Credentials> {
  let known = await read();
  let readAt = clock.monotonic();
  let renewedAt = -Infinity;
  let reading: Promise<void> | null = null;

  const again = async () => {
    // Counted from the attempt, so that a missing file is not looked for with every call.
    readAt = clock.monotonic();
    try {
      const now = await read();
      if (sameMaterial(known, now)) return;
      if (now.server !== known.server) {
        logger.warn("kubernetes credentials kept: they are for another server now");
        return;
      }
      known = now;
      logger.info("kubernetes credentials changed");
    } catch (error) {
      logger.warn("kubernetes credentials cannot be read: those known are used", { error });
    }
  };
  const refresh = () => reading ??= again().finally(() => reading = null);

  return {
    async current() {
      if (clock.monotonic() - readAt >= KEPT_MS) await refresh();
      return known;
    },
    async renew(used) {
      if (sameMaterial(known, used)) {
        if (reading === null && clock.monotonic() - renewedAt < SPACING_MS) return null;
        renewedAt = clock.monotonic();
        await refresh();
      }
      return sameMaterial(known, used) ? null : known;
    },
  };
}
