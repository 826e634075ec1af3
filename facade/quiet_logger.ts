import type { Clock } from "../lib/clock.ts";
import type { Fields, Logger } from "../lib/logger.ts";

/** The same warning is written once in this time. */
const EVERY_MS = 10_000;
/** Warnings told apart; what comes beyond is told together. */
const MOST = 256;

/**
 * A logger whose warnings cannot flood the log, whoever causes them: hundreds of gates repeat their
 * calls while Gitea is away, and anybody with an SVID may be refused as often as he likes. Warnings
 * are the same if their texts are, errors left out; `repeated` tells how often one was not written.
 */
export function createQuietLogger(logger: Logger, clock: Pick<Clock, "monotonic">): Logger {
  const told = new Map<string, { at: number; missed: number }>();
  const keyOf = (message: string, fields: Fields) => {
    const { error: _, ...rest } = fields;
    const key = JSON.stringify([message, rest]);
    return told.has(key) || told.size < MOST ? key : message;
  };
  const forget = () => {
    const now = clock.monotonic();
    for (const [key, { at, missed }] of told) {
      if (now - at >= EVERY_MS * (missed === 0 ? 1 : 10)) told.delete(key);
    }
  };
  return {
    ...logger,
    warn(message, fields = {}) {
      if (told.size >= MOST) forget();
      const key = keyOf(message, fields);
      const now = clock.monotonic();
      const last = told.get(key);
      if (last !== undefined && now - last.at < EVERY_MS) {
        last.missed++;
        return;
      }
      told.set(key, { at: now, missed: 0 });
      const repeated = last?.missed ?? 0;
      logger.warn(message, repeated === 0 ? fields : { ...fields, repeated });
    },
    child: (fields) => createQuietLogger(logger.child(fields), clock),
  };
}
