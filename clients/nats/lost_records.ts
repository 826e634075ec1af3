import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import type { Clock } from "../../lib/clock.ts";
import { createBucket } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";
import { numberOf } from "./json.ts";

const KEY = "alarm.records-lost";
/** How long the alarm stands. */
const DAY_MS = 86_400_000;

/**
 * When the bucket was last found missing beside an existing stream, within a day; null when it was not.
 * Whoever has just made it again (`bucketLost`) writes that down, because the leader may be another.
 */
export async function lostRecordsAt(
  connection: NatsConnection,
  { bucketLost, clock, signal }: Call & { readonly bucketLost: boolean; readonly clock: Clock },
): Promise<number | null> {
  const bucket = createBucket(connection, { clock });
  const now = clock.now();
  const stored = await bucket.get(KEY, { signal });
  if (!bucketLost) {
    const at = numberOf(stored?.value.at);
    return at !== null && at > now - DAY_MS ? at : null;
  }
  try {
    await bucket.put(KEY, { at: now }, stored?.revision ?? 0, { signal });
  } catch (error) {
    // Two that were started together have both made it: either's word will do.
    if (!(error instanceof QueueError) || error.code !== "conflict") throw error;
  }
  return now;
}
