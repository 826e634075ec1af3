import type { Msg, Subscription } from "nats";
import type { Call } from "../../controller/backend.ts";
import type { BackendName } from "../../controller/model/ids.ts";
import type { Demand, StoredMessage } from "../../controller/queue.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { nanos } from "./api.ts";
import { createBell } from "./bell.ts";
import type { NatsConnection } from "./connection.ts";
import { isTransient } from "./errors.ts";
import { encodeJson } from "./json.ts";
import { bringBackLost, type Held } from "./lost_deliveries.ts";
import { storedMessage } from "./message.ts";

/** How long the server keeps a pull open. */
const PULL_MS = 5_000;
/** A pull that the server has not ended by then is lost. */
const GRACE_MS = 1_000;
const MAX_BATCH = 256;
const HEARTBEAT = 100;
const NO_MESSAGES = 404;
const EXPIRED = 408;

/** What a consumer needs. */
export interface ConsumeOptions {
  readonly connection: NatsConnection;
  readonly stream: string;
  readonly backend: BackendName;
  readonly demand: Demand;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Makes the durable consumer unless it exists. */
  ensureConsumer(call: Call): Promise<void>;
  /** Outlives this consumption: what its caller holds, it holds. */
  readonly held: Held;
  ackPending(call: Call): Promise<number>;
  resetConsumer(call: Call): Promise<void>;
}

/** A request for messages that the server has not ended yet. */
interface Pull {
  left: number;
  readonly deadline: number;
  readonly subscription: Subscription;
}

/**
 * Messages of one durable consumer, as many as the demand allows.
 *
 * ```
 * demand ---> wanted = free - pulled - buffered - being processed
 *                 |  > 0
 *                 v
 *              pull(n) ---> messages, in stream order ---> buffer ---> the caller's loop
 *                 ^                                                        |
 *                 +---- again: more is free, a message was done, ----------+
 *                       a pull ended, the connection came back
 * ```
 * Rules of failure: a pull ends when its messages have come, when the server says so, when the
 * connection was lost, or a second after its time. A consumer that is gone is made again, and so is one
 * that lost deliveries with its server. What is in the buffer at the end is given back. A message that
 * was on its way then comes again after the ack wait, or when the next leader makes the consumer again.
 */
export async function* consumeMessages(
  options: ConsumeOptions,
  signal: AbortSignal,
): AsyncGenerator<StoredMessage, void, void> {
  const { connection, demand, clock, logger } = options;
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${options.stream}.${options.backend}`;
  const pulls = new Set<Pull>();
  const buffer: StoredMessage[] = [];
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  const [arrival, turn] = [createBell(), createBell()];
  let processing = 0;
  let trouble: string | null = UNKNOWN;
  let complaint = "";

  const end = (pull: Pull) => {
    if (pulls.delete(pull)) pull.subscription.unsubscribe();
  };

  const take = (pull: Pull, inbox: string, message: Msg) => {
    if (message.subject !== inbox) {
      if (--pull.left === 0) end(pull);
      buffer.push(options.held.take(storedMessage(message, options)));
      return arrival.ring();
    }
    const code = message.headers?.code ?? 0;
    if (code === HEARTBEAT) return;
    end(pull);
    // Whatever else it is (consumer deleted, server going down, nobody there): look at the consumer.
    if (code !== EXPIRED && code !== NO_MESSAGES) {
      trouble = `${message.headers?.description ?? "refused"} (${code})`;
    }
    turn.ring();
  };

  const pull = (batch: number) => {
    const inbox = connection.wire.inbox();
    const subscription = connection.wire.subscribe(inbox, (message) => take(entry, inbox, message));
    if (subscription === undefined) return;
    const deadline = clock.monotonic() + PULL_MS + GRACE_MS;
    const entry: Pull = { left: batch, deadline, subscription };
    pulls.add(entry);
    connection.wire.publish(subject, encodeJson({ batch, expires: nanos(PULL_MS) }), {
      reply: inbox,
    });
  };

  const topUp = () => {
    if (trouble !== null || connection.status().kind !== "connected") return;
    let asked = processing + buffer.length;
    for (const each of pulls) asked += each.left;
    const wanted = Math.min(MAX_BATCH, demand.free() - asked);
    if (wanted > 0) pull(wanted);
  };

  /** Makes the consumer again after trouble; stays in trouble when that fails. */
  const repair = async () => {
    if (trouble !== UNKNOWN) {
      logger.warn("consumer is looked at again", { backend: options.backend, detail: trouble });
    }
    try {
      await options.ensureConsumer({ signal: stopped });
      trouble = null;
    } catch (error) {
      if (stopped.aborted) return;
      const told = error instanceof Error ? error.message : String(error);
      if (!isTransient(error) && told !== complaint) {
        logger.error("consumer cannot be made", { backend: options.backend, error });
      }
      complaint = told;
      await clock.sleep(REPAIR_MS, stopped);
    }
  };

  const drive = async () => {
    let watching = false;
    const watch = () => {
      if (watching) return;
      watching = true;
      demand.changed(stopped).then(() => {
        watching = false;
        turn.ring();
      }, () => {});
    };
    connection.onConnect(() => {
      // The server forgets pulls with the connection; their inboxes must not serve again.
      for (const each of [...pulls]) end(each);
      turn.ring();
    }, stopped);
    while (!stopped.aborted) {
      if (trouble !== null) await repair();
      watch();
      topUp();
      await turn.wait(stopped);
    }
  };

  const expire = async () => {
    while (!stopped.aborted) {
      await clock.sleep(GRACE_MS, stopped);
      const now = clock.monotonic();
      for (const each of [...pulls]) {
        if (each.deadline > now) continue;
        logger.warn("pull was not ended by the server", { backend: options.backend });
        trouble = "a pull was lost";
        end(each);
        turn.ring();
      }
    }
  };

  const recall = () =>
    bringBackLost({ ...options, reset: (call) => options.resetConsumer(call) }, stopped);

  const tasks = [drive(), expire(), recall()].map((task) =>
    task.catch((error) => {
      if (!stopped.aborted) {
        stop.abort(error);
        arrival.ring();
      }
    })
  );
  try {
    while (!stopped.aborted) {
      const message = buffer.shift();
      if (message === undefined) {
        await arrival.wait(stopped).catch(() => {});
        continue;
      }
      processing = 1;
      yield message;
      processing = 0;
      turn.ring();
    }
    if (!signal.aborted) throw stop.signal.reason;
  } finally {
    stop.abort();
    await Promise.all(tasks);
    for (const each of [...pulls]) end(each);
    for (const message of buffer) message.nak(0);
  }
}

const REPAIR_MS = 250;
const UNKNOWN = "not looked at yet";
