import { AckPolicy, connect, headers, RetentionPolicy, StorageType } from "nats";

/** A way to hand messages over, measured as the others are. */
export interface HandOver {
  /** Moves `count` messages from one end to the other and resolves to the seconds it took. */
  run(count: number): Promise<number>;
}

/**
 * The least that a durable hand-over costs on this server: publish with a message id, fetch, wait for
 * the confirmed ack. `window` publishes are on their way at a time, as with as many fetchers;
 * fetching and acking are bounded by the server alone. Makes a stream of its own, and deletes it when disposed.
 */
export async function rawHandOver(
  nats: { readonly url: string; readonly user: string | null; readonly password: string | null },
  options: { readonly window: number; readonly payload: Uint8Array },
): Promise<HandOver & AsyncDisposable> {
  const connection = await connect({
    servers: nats.url,
    ...nats.user === null ? {} : { user: nats.user },
    ...nats.password === null ? {} : { pass: nats.password },
  });
  const manager = await connection.jetstreamManager();
  await manager.streams.add({
    name: "BENCH_RAW",
    subjects: ["bench.raw"],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    allow_direct: true,
    duplicate_window: 600_000_000_000,
  });
  await manager.consumers.add("BENCH_RAW", {
    durable_name: "raw",
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 10_000,
    filter_subject: "bench.raw",
  });
  const stream = connection.jetstream();
  const consumer = await stream.consumers.get("BENCH_RAW", "raw");
  let sent = 0;
  const publishAll = async (count: number) => {
    let left = count;
    await Promise.all(Array.from({ length: options.window }, async () => {
      while (left-- > 0) {
        const meta = headers();
        meta.set("Nats-Msg-Id", `raw-${sent++}`);
        await stream.publish("bench.raw", options.payload, { headers: meta });
      }
    }));
  };
  const takeAll = async (count: number) => {
    const acks: Promise<boolean>[] = [];
    while (acks.length < count) {
      const wanted = { max_messages: count - acks.length, expires: 1_000 };
      for await (const message of await consumer.fetch(wanted)) acks.push(message.ackAck());
    }
    await Promise.all(acks);
  };
  return {
    async run(count) {
      const started = performance.now();
      await Promise.all([publishAll(count), takeAll(count)]);
      return (performance.now() - started) / 1_000;
    },
    async [Symbol.asyncDispose]() {
      await manager.streams.delete("BENCH_RAW");
      await connection.close();
    },
  };
}
