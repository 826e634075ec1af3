import type { SignOutStore } from "../../controller/access/sign_outs.ts";
import type { Clock } from "../../lib/clock.ts";
import { isObject } from "../../lib/json_object.ts";
import { createBucket } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";
import { type Json, numberOf } from "./json.ts";

/** `{"floor": <ms>, "ended": {"<hash of a session's id>": <ms>}}` */
const KEY = "access.signed-out";
/** SHA-256 in base64url. */
const HASH = /^[A-Za-z0-9_-]{43}$/;

/**
 * Ended sessions as one key of the bucket: it is bounded, each write takes away what is over, and one
 * hint tells of any of them. The bucket must exist (`ensureStreams`) or is waited for.
 */
export function createSignOutStore(
  connection: NatsConnection,
  deps: { readonly clock: Clock },
): SignOutStore {
  const bucket = createBucket(connection, deps);
  return {
    async read(call) {
      const stored = await bucket.get(KEY, call);
      return {
        ended: readEnded(stored?.value),
        floor: numberOf(stored?.value.floor) ?? 0,
        revision: stored?.revision ?? 0,
      };
    },
    async write({ ended, floor, revision }, call) {
      await bucket.put(KEY, { floor, ended: Object.fromEntries(ended) }, revision, call);
    },
    hint: (listener, signal) => bucket.hint(KEY, listener, signal),
  };
}

function readEnded(value: Json | undefined): ReadonlyMap<string, number> {
  const entries = isObject(value?.ended) ? Object.entries(value.ended) : [];
  return new Map(
    entries.flatMap(([hash, endsAt]) =>
      HASH.test(hash) && typeof endsAt === "number" ? [[hash, endsAt] as const] : []
    ),
  );
}
