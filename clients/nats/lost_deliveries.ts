import type { Call } from "../../controller/backend.ts";
import type { BackendName } from "../../controller/model/ids.ts";
import type { StoredMessage } from "../../controller/queue.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { createBell } from "./bell.ts";
import type { NatsConnection } from "./connection.ts";
import { isTransient } from "./errors.ts";

/** Messages of one consumer that have come and are not done: in hand, or given back for a while. */
export interface Held {
  count(): number;
  /** Counts the message until it is acknowledged or terminated. */
  take(message: StoredMessage): StoredMessage;
  /** It was removed from the stream. */
  forget(sequence: number): void;
}

/** Makes a {@link Held} with nothing in it. */
export function createHeld(): Held {
  const sequences = new Set<number>();
  return {
    count: () => sequences.size,
    take(message) {
      const { sequence } = message;
      sequences.add(sequence);
      return {
        ...message,
        async ack(call) {
          await message.ack(call);
          sequences.delete(sequence);
        },
        async terminate(reason, call) {
          await message.terminate(reason, call);
          sequences.delete(sequence);
        },
      };
    },
    forget: (sequence) => void sequences.delete(sequence),
  };
}

/**
 * Looks at the consumer after each reconnect, until aborted. A nats-server that dies may have written
 * a delivery down that never arrived; it then thinks that somebody works on the message, and would
 * bring it only after the ack wait. So when it counts more messages under way than are held here, the
 * consumer is made again: everything comes at once, also what is held, whose final words are still
 * good (`message.ts`).
 *
 * Two looks must agree, because a message may be on its way right now. A count that was forgotten can
 * hide a lost one: then the ack wait brings it.
 */
export async function bringBackLost(
  deps: {
    readonly connection: Pick<NatsConnection, "onConnect">;
    readonly backend: BackendName;
    readonly held: Held;
    readonly clock: Clock;
    readonly logger: Logger;
    /** How many messages the server thinks are being worked on. */
    ackPending(call: Call): Promise<number>;
    reset(call: Call): Promise<void>;
  },
  signal: AbortSignal,
): Promise<void> {
  const { clock, held } = deps;
  const reconnected = createBell();
  deps.connection.onConnect(reconnected.ring, signal);

  const look = async () => {
    for (let looks = 0, lost = 0; looks < MAX_LOOKS; looks++) {
      await clock.sleep(LOOK_MS, signal);
      const pending = await deps.ackPending({ signal });
      lost = pending > held.count() ? lost + 1 : 0;
      if (lost < AGREEING) continue;
      deps.logger.warn("deliveries were lost with the server, consumer is made again", {
        backend: deps.backend,
        pending,
        held: held.count(),
      });
      return await deps.reset({ signal });
    }
  };

  while (!signal.aborted) {
    await reconnected.wait(signal);
    try {
      await look();
    } catch (error) {
      signal.throwIfAborted();
      // The next connection is looked at again.
      if (!isTransient(error)) {
        deps.logger.error("consumer cannot be looked at", { backend: deps.backend, error });
      }
    }
  }
}

const LOOK_MS = 1_000;
const AGREEING = 2;
const MAX_LOOKS = 5;
