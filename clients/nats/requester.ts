import {
  createInbox,
  headers as natsHeaders,
  type Msg,
  type NatsConnection as Client,
  type Subscription,
} from "nats";
import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import { abortable, onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";

/** Headers of a message; each name has one value. */
export type Headers = Readonly<Record<string, string>>;

/** Options of one request. */
export interface RequestOptions extends Call {
  readonly headers?: Headers;
  /** Time for the connection to be there, and again for the answer. */
  readonly timeoutMs?: number;
  /** Called at the moment of sending; what it throws is thrown, and nothing is sent. */
  readonly before?: () => void;
}

/** What happens to messages of a subscription; called in the order of arrival. */
export type OnMessage = (message: Msg) => void;

/**
 * Requests and messages over the current connection. The client library's own requests cannot be
 * aborted and wait out their time-out when the connection breaks; these can, and fail at once.
 */
export interface Requester {
  /**
   * Sends and resolves to the first answer. Waits for a connection. Rejects with `QueueError`:
   * `timeout` (nobody knows whether it was done), `unavailable` (not connected, connection lost on
   * the way, or nobody listens), or with the signal's reason.
   */
  request(subject: string, data: Uint8Array, options: RequestOptions): Promise<Msg>;
  /** Sends and forgets; dropped when there is no connection. */
  publish(subject: string, data: Uint8Array, options?: PublishOptions): void;
  /**
   * Subscribes now; undefined when there is no connection. The subscription outlives reconnects, until the
   * server refuses it: then `onRefused` is called, and nothing more comes.
   */
  subscribe(
    subject: string,
    onMessage: OnMessage,
    onRefused?: () => void,
  ): Subscription | undefined;
  /** An inbox of its own for each call. */
  inbox(): string;
  /** A connection is there. */
  attach(client: Client): void;
  /** It is gone: everything that waits for an answer is rejected. */
  detach(reason: QueueError): void;
}

/** Options of a message that is not answered. */
export interface PublishOptions {
  readonly headers?: Headers;
  readonly reply?: string;
}

const TIMEOUT_MS = 5_000;
/** The server answers so when nobody listens at the subject. */
const NO_RESPONDERS = 503;

/** Makes a {@link Requester}; `connected` resolves once there is a connection. */
export function createRequester(deps: {
  readonly clock: Clock;
  connected(signal: AbortSignal): Promise<void>;
}): Requester {
  const { clock } = deps;
  const base = createInbox();
  const waiting = new Map<string, PromiseWithResolvers<Msg>>();
  let client: Client | undefined;
  let counter = 0;
  let muxed: Client | undefined;

  const answer = (message: Msg) => {
    const token = message.subject.slice(base.length + 1);
    waiting.get(token)?.resolve(message);
  };

  const rejectAll = (reason: QueueError) => {
    for (const entry of [...waiting.values()]) entry.reject(reason);
  };

  const subscribe = (
    nc: Client,
    subject: string,
    on: { readonly message: OnMessage; readonly refused?: (() => void) | undefined },
  ) =>
    nc.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) on.message(message);
        else on.refused?.();
      },
    });

  /** Subscribes to the answers to all requests; again when that was refused and may be allowed by now. */
  const listen = (nc: Client) => {
    if (muxed === nc) return;
    muxed = nc;
    const refused = () => {
      muxed = undefined;
      const why = "the server does not let us hear its answers; allow subscriptions of _INBOX.>";
      rejectAll(new QueueError("unavailable", `Ask NATS: ${why}`));
    };
    subscribe(nc, `${base}.*`, { message: answer, refused });
  };

  const connectedWithin = async (timeoutMs: number, signal: AbortSignal) => {
    using timeout = clock.timeout(timeoutMs);
    try {
      await deps.connected(AbortSignal.any([signal, timeout.signal]));
    } catch (error) {
      if (!signal.aborted && timeout.signal.aborted) {
        throw new QueueError("unavailable", `Ask NATS: not connected within ${timeoutMs} ms`);
      }
      throw error;
    }
  };

  return {
    async request(subject, data, { headers, timeoutMs = TIMEOUT_MS, signal, before }) {
      signal.throwIfAborted();
      if (client === undefined) await connectedWithin(timeoutMs, signal);
      signal.throwIfAborted();
      if (client === undefined) throw new QueueError("unavailable", "Ask NATS: not connected");
      const token = (counter++).toString(36);
      const entry = Promise.withResolvers<Msg>();
      using timeout = clock.timeout(timeoutMs);
      onAbort(timeout.signal, () =>
        entry.reject(
          new QueueError("timeout", `Ask NATS at "${subject}": no answer within ${timeoutMs} ms`),
        ));
      waiting.set(token, entry);
      try {
        before?.();
        listen(client);
        send(client, subject, data, { reply: `${base}.${token}`, ...headers && { headers } });
        const message = await abortable(entry.promise, signal);
        if (message.headers?.code === NO_RESPONDERS && message.data.length === 0) {
          throw new QueueError("unavailable", `Ask NATS at "${subject}": nobody answers there`);
        }
        return message;
      } finally {
        waiting.delete(token);
      }
    },
    publish(subject, data, options = {}) {
      if (client !== undefined) send(client, subject, data, options);
    },
    subscribe: (subject, onMessage, onRefused) =>
      client && subscribe(client, subject, { message: onMessage, refused: onRefused }),
    inbox: () => createInbox(),
    attach(nc) {
      client = nc;
      listen(nc);
    },
    detach(reason) {
      client = undefined;
      rejectAll(reason);
    },
  };
}

function send(
  client: Client,
  subject: string,
  data: Uint8Array,
  options: { readonly headers?: Headers; readonly reply?: string },
): void {
  try {
    client.publish(subject, data, {
      ...options.reply === undefined ? {} : { reply: options.reply },
      ...options.headers === undefined ? {} : { headers: toHeaders(options.headers) },
    });
  } catch (cause) {
    const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : "";
    if (code === "MAX_PAYLOAD_EXCEEDED") {
      throw new QueueError(
        "too_large",
        `Send ${data.length} bytes to NATS: more than max_payload`,
        {
          cause,
        },
      );
    }
    if (code === "BAD_HEADER") {
      throw new QueueError("refused", `Send to NATS at "${subject}": a header is malformed`, {
        cause,
      });
    }
    throw new QueueError("unavailable", `Send to NATS at "${subject}": ${code}`, { cause });
  }
}

function toHeaders(headers: Headers) {
  const made = natsHeaders();
  for (const [name, value] of Object.entries(headers)) made.set(name, value);
  return made;
}
