import type { Call } from "../../controller/backend.ts";
import type { AssignmentId, BackendName } from "../../controller/model/ids.ts";
import {
  type AssignmentQueue,
  type Demand,
  QueueError,
  type StoredMessage,
} from "../../controller/queue.ts";
import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";

/** Switches; set them at any time. */
export interface FakeQueueFaults {
  /** The server is away: publish throws `unavailable`, everything else waits. */
  away: boolean;
  /** The next publish is stored, but throws `timeout`. */
  loseNextAnswer: boolean;
}

/** A queue in memory. */
export interface FakeQueue extends AssignmentQueue {
  readonly faults: FakeQueueFaults;
  /** Ids that are stored, taken or not, in stream order. */
  stored(backend?: BackendName): AssignmentId[];
  /** Ids that were terminated, with their reasons. */
  readonly terminated: ReadonlyMap<AssignmentId, string>;
  /** Deletes the consumer as an operator might; it is made again by whoever consumes. */
  deleteConsumer(backend: BackendName): void;
  /** Forgets which ids were stored, as a restarted server does for those that were acknowledged. */
  forgetIds(): void;
  /** Wakes everybody who waits, after a switch was set. */
  wake(): void;
}

interface Item {
  readonly id: AssignmentId;
  readonly backend: BackendName;
  readonly data: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  readonly sequence: number;
  readonly storedAt: number;
  deliveries: number;
  /** Delivered again from then on, on the monotonic clock. */
  readyAt: number;
}

/** Makes a {@link FakeQueue}; delays run on `clock`. */
export function createFakeQueue(
  options: {
    readonly clock: Clock;
    readonly ackWaitMs?: number;
    readonly maxPayload?: number;
    readonly maxMessages?: number;
  },
): FakeQueue {
  const { clock } = options;
  const ackWaitMs = options.ackWaitMs ?? 45_000;
  const maxPayload = options.maxPayload ?? 1_048_576;
  const maxMessages = options.maxMessages ?? 100_000;
  const items = new Map<number, Item>();
  const seen = new Map<string, number>();
  const terminated = new Map<AssignmentId, string>();
  const faults: FakeQueueFaults = { away: false, loseNextAnswer: false };
  let changed = Promise.withResolvers<void>();
  let sequence = 0;

  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const present = async ({ signal }: Call) => {
    signal.throwIfAborted();
    while (faults.away) await abortable(changed.promise, signal);
  };
  const ready = (backend: BackendName) =>
    [...items.values()].filter((item) =>
      item.backend === backend && item.readyAt <= clock.monotonic()
    );
  const nextReadyMs = (backend: BackendName) => {
    // What is ready already waits for demand, not for time.
    const later = [...items.values()].filter((item) => item.backend === backend)
      .map((item) => item.readyAt - clock.monotonic()).filter((ms) => ms > 0);
    return later.length === 0 ? undefined : Math.max(1, Math.min(...later));
  };

  const deliver = (item: Item): StoredMessage => {
    item.deliveries++;
    item.readyAt = clock.monotonic() + ackWaitMs;
    const remove = async (call: Call) => {
      await present(call);
      items.delete(item.sequence);
      wake();
    };
    return {
      id: item.id,
      backend: item.backend,
      data: item.data,
      headers: item.headers,
      sequence: item.sequence,
      storedAt: item.storedAt,
      deliveries: item.deliveries,
      ack: remove,
      async terminate(reason, call) {
        await remove(call);
        terminated.set(item.id, reason);
      },
      nak(delayMs) {
        item.readyAt = clock.monotonic() + delayMs;
        wake();
      },
      inProgress() {
        item.readyAt = clock.monotonic() + ackWaitMs;
      },
    };
  };

  const release = (backend: BackendName) => {
    for (const item of items.values()) if (item.backend === backend) item.readyAt = 0;
    wake();
  };

  async function* consume(
    backend: BackendName,
    demand: Demand,
    { signal }: Call,
  ): AsyncGenerator<StoredMessage, void, void> {
    while (!signal.aborted) {
      const [item] = demand.free() > 0 && !faults.away ? ready(backend) : [];
      if (item !== undefined) {
        yield deliver(item);
        continue;
      }
      const round = new AbortController();
      const either = AbortSignal.any([signal, round.signal]);
      const delay = nextReadyMs(backend);
      await abortable(
        Promise.race([
          changed.promise,
          demand.changed(either),
          ...delay === undefined ? [] : [clock.sleep(delay, either)],
        ]),
        either,
      ).catch(() => {});
      round.abort();
    }
  }

  return {
    maxPayload,
    faults,
    terminated,
    wake,
    stored: (backend) =>
      [...items.values()].filter((item) => backend === undefined || item.backend === backend)
        .map((item) => item.id),
    deleteConsumer: release,
    forgetIds: () => seen.clear(),
    consume,
    async publish({ id, backend, data, headers, again }, { signal }) {
      await Promise.resolve();
      signal.throwIfAborted();
      if (faults.away) throw new QueueError("unavailable", "Store: the fake server is away");
      if (data.length > maxPayload) {
        throw new QueueError("too_large", `Store ${id}: ${data.length} bytes are too many`);
      }
      const name = again === undefined ? id : `${id}:${again}`;
      const earlier = seen.get(name);
      if (earlier !== undefined) return { sequence: earlier, duplicate: true };
      if (items.size >= maxMessages) {
        throw new QueueError("full", "Store: maximum messages exceeded", { retryable: true });
      }
      sequence++;
      seen.set(name, sequence);
      const stored = { ...headers, "Nats-Msg-Id": name };
      items.set(sequence, {
        id,
        backend,
        data,
        headers: stored,
        sequence,
        storedAt: clock.now(),
        deliveries: 0,
        readyAt: 0,
      });
      wake();
      if (faults.loseNextAnswer) {
        faults.loseNextAnswer = false;
        throw new QueueError("timeout", "Store: the fake server's answer was lost");
      }
      return { sequence, duplicate: false };
    },
    async resetConsumer(backend, call) {
      await present(call);
      release(backend);
    },
    async counts(backend, call) {
      await present(call);
      const all = [...items.values()].filter((item) => item.backend === backend);
      const numPending = all.filter((item) => item.deliveries === 0).length;
      return { numPending, numAckPending: all.length - numPending };
    },
    async list(backend, { fromSequence, limit }, call) {
      await present(call);
      return [...items.values()]
        .filter((item) => item.backend === backend && item.sequence >= fromSequence)
        .slice(0, limit)
        .map(({ id, sequence, storedAt, headers, data }) => ({
          id,
          backend,
          sequence,
          storedAt,
          headers,
          data,
        }));
    },
    async remove(sequence, call) {
      await present(call);
      items.delete(sequence);
      wake();
    },
  };
}
