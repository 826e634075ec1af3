import type { Call } from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import { askApi } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { ERR_CODE } from "./errors.ts";
import { BUCKET_STREAM } from "./streams.ts";

const EVERY_MS = 5_000;

/**
 * Calls back once when JetStream says that the bucket `CI_RUNNER_STATE` is gone; resolves then, or when
 * the signal aborts. Writes into a bucket that is not there are answered by nobody, which looks like a
 * server that is away: they would wait for ever.
 */
export async function watchBucket(
  connection: NatsConnection,
  { clock, signal, onLost }: Call & { readonly clock: Clock; onLost(): void },
): Promise<void> {
  while (!signal.aborted) {
    // No answer says nothing about the bucket.
    const info = await askApi(connection, { path: `STREAM.INFO.${BUCKET_STREAM}` }, { signal })
      .catch(() => null);
    if (signal.aborted) return;
    if (info?.kind === "error" && info.errCode === ERR_CODE.streamNotFound) return onLost();
    await clock.sleep(EVERY_MS, signal).catch(() => {});
  }
}
