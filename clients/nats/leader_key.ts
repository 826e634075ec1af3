import type { LeaderKey } from "../../controller/leadership/solo_leader.ts";
import type { Clock } from "../../lib/clock.ts";
import { createBucket } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";
import { numberOf, textOf } from "./json.ts";

/** Key of the leader: `{"holder": <name>, "place": <id or null>, "address": <of its pages or null>, "at": <ms>}`. */
const LEADER_KEY = "control.leader";

/** The leader's key in the bucket; the streams must exist: `ensureStreams`. */
export function createLeaderKey(
  connection: NatsConnection,
  deps: { readonly clock: Clock },
): LeaderKey {
  const bucket = createBucket(connection, deps);
  return {
    async read(call) {
      const stored = await bucket.get(LEADER_KEY, call);
      if (stored === undefined) return undefined;
      const { holder, place, address, at } = stored.value;
      return {
        revision: stored.revision,
        value: {
          // Somebody's, whatever else it says: it must be seen to rest before it is replaced.
          holder: textOf(holder) ?? "unknown",
          place: textOf(place),
          address: textOf(address),
          at: numberOf(at) ?? 0,
        },
      };
    },
    write: (note, revision, call) => bucket.put(LEADER_KEY, note, revision, call),
    async remove(revision, call) {
      await bucket.remove(LEADER_KEY, revision, call);
    },
    watch: (listener, signal) => bucket.hint(LEADER_KEY, listener, signal),
  };
}
