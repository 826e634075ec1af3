import { concatBytes } from "../lib/bytes.ts";
import type { Clock } from "../lib/clock.ts";

/**
 * Fans changes out to every open event stream (Server-Sent Events).
 *
 * ```
 * publish --> ring of the last 1000 --> one bounded queue per client --> socket
 *                 |                          full: the client is cut and comes back with its last id
 *                 +-- replay after Last-Event-ID; not in the ring any more: a snapshot first
 * ```
 * A message is encoded once. Nothing here waits for a client: a slow one costs at most its queue.
 */
export interface Hub extends AsyncDisposable {
  /** Id of the newest event: `<epoch>-<seq>`, seq 0 before the first. */
  readonly lastId: string;
  /** Open streams. */
  readonly clients: number;
  /** Sends `data` as JSON to every client. Never throws for a client's sake. */
  publish(event: string, data: unknown): void;
  /** Sends `data` without an id: not kept for replay, for what is told again soon anyway. */
  sendTransient(event: string, data: unknown): void;
  /**
   * Opens a stream that starts with everything after `lastEventId`, or with `snapshot()` when there
   * is none, it is another process's, or it has left the ring. Undefined when the hub is full or closed.
   */
  connect(
    lastEventId: string | null,
    snapshot: () => unknown,
  ): ReadableStream<Uint8Array> | undefined;
}

/** Options of {@link createHub}. */
export interface HubOptions {
  /** Differs for every process: ids of an earlier one are never mistaken for ours. */
  readonly epoch: number;
  /** Events kept for replay. */
  readonly ringSize?: number;
  /** Bytes of them, 16 MiB by default: an event about a large backend is long. */
  readonly ringBytes?: number;
  /** Messages that may wait for one client. */
  readonly queueSize?: number;
  /** Streams open at a time. */
  readonly maxClients?: number;
  /** Time between comments that keep proxies from closing the stream. */
  readonly keepAliveMs?: number;
}

/**
 * The queue is ours and not the stream's, so that a client which never reads can be cut: closing drops
 * what waits for it. (An error on the stream would do too, but the server prints it.)
 */
interface Client {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  readonly queue: Uint8Array[];
  /** The socket asked for more and there was nothing. */
  hungry: boolean;
}

const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(": ka\n\n");

/** Makes a {@link Hub}. Dispose it to end every stream. */
export function createHub(deps: { readonly clock: Clock }, options: HubOptions): Hub {
  const { epoch, ringSize = 1000, queueSize = 256, maxClients = 500, keepAliveMs = 15_000 } =
    options;
  const { ringBytes = 16 * 2 ** 20 } = options;
  const clients = new Set<Client>();
  const stop = new AbortController();
  const ring: Uint8Array[] = [];
  let kept = 0;
  let sequence = 0;
  const idOf = (seq: number) => `${epoch}-${seq}`;

  const close = (client: Client) => {
    clients.delete(client);
    client.queue.length = 0;
    client.controller.close();
  };
  const send = (client: Client, bytes: Uint8Array) => {
    if (client.hungry) {
      client.hungry = false;
      client.controller.enqueue(bytes);
    } else if (client.queue.length < queueSize) client.queue.push(bytes);
    else close(client);
  };

  const missedBy = (lastEventId: string | null): readonly Uint8Array[] | undefined => {
    const match = /^(\d{1,16})-(\d{1,16})$/.exec(lastEventId ?? "");
    if (match === null || Number(match[1]) !== epoch) return undefined;
    const seen = Number(match[2]);
    if (seen > sequence || seen < sequence - ring.length) return undefined;
    return ring.slice(ring.length - (sequence - seen));
  };

  const keepAlive = (async () => {
    while (!stop.signal.aborted) {
      await deps.clock.sleep(keepAliveMs, stop.signal).catch(() => {});
      if (!stop.signal.aborted) { for (const client of clients) send(client, KEEP_ALIVE); }
    }
  })();

  return {
    get lastId() {
      return idOf(sequence);
    },
    get clients() {
      return clients.size;
    },
    publish(event, data) {
      if (stop.signal.aborted) return;
      sequence++;
      const bytes = encode(event, idOf(sequence), data);
      ring.push(bytes);
      kept += bytes.length;
      while (ring.length > ringSize || kept > ringBytes) kept -= ring.shift()?.length ?? kept;
      for (const client of clients) send(client, bytes);
    },
    sendTransient(event, data) {
      if (stop.signal.aborted || clients.size === 0) return;
      const bytes = encode(event, null, data);
      for (const client of clients) send(client, bytes);
    },
    connect(lastEventId, snapshot) {
      if (stop.signal.aborted || clients.size >= maxClients) return undefined;
      const missed = missedBy(lastEventId) ?? [encode("snapshot", idOf(sequence), snapshot())];
      let client: Client | undefined;
      return new ReadableStream<Uint8Array>({
        start(controller) {
          // One chunk: a replay may be longer than the queue.
          const queue = [concatBytes([encoder.encode("retry: 1000\n\n"), ...missed])];
          client = { controller, queue, hungry: false };
          clients.add(client);
        },
        pull(controller) {
          if (client === undefined) return;
          const next = client.queue.shift();
          client.hungry = next === undefined;
          if (next !== undefined) controller.enqueue(next);
        },
        cancel() {
          if (client !== undefined) clients.delete(client);
        },
      }, { highWaterMark: 0 });
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      for (const client of clients) close(client);
      await keepAlive;
    },
  };
}

function encode(event: string, id: string | null, data: unknown): Uint8Array {
  const head = id === null ? "" : `id: ${id}\n`;
  // JSON.stringify leaves no line break, so that one data line is enough.
  return encoder.encode(`${head}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
