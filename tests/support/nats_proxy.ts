import { createHoldPoints, type HoldPoint } from "./hold_proxy_point.ts";
import { createFrameReader, type NatsFrame } from "./nats_proxy_frames.ts";

/** One message on its way between a client and the server. */
export interface ProxiedMessage {
  /**
   * `request`: published by the client. `answer`: what the server sends to the inbox of a request,
   * which is then told by `subject` and `text`. `delivery`: a message that a pull brings.
   */
  readonly way: "request" | "answer" | "delivery";
  /** Of the request; of a delivery, the subject by which it is acknowledged. */
  readonly subject: string;
  /** Payload of the request or the delivery. */
  readonly text: string;
}

/** A TCP proxy in front of one nats-server that can hold or lose chosen messages. */
export interface NatsProxy extends AsyncDisposable {
  /** `nats://127.0.0.1:<port>`. */
  readonly url: string;
  /** Holds what matches; everything else passes it. What is held ends with its connection. */
  hold(match: (message: ProxiedMessage) => boolean): HoldPoint<ProxiedMessage>;
}

const MAX_INBOXES = 10_000;

/** Listens on loopback and passes each connection to a new one to `upstream`. */
export function startNatsProxy(
  upstream: { readonly hostname: string; readonly port: number },
): NatsProxy {
  const points = createHoldPoints<ProxiedMessage>();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const connections = new Set<Promise<void>>();

  const serve = async (client: Deno.TcpConn) => {
    let server: Deno.TcpConn;
    // From now on: it may be that all are closed while the other side is being made.
    open.add(client);
    try {
      server = await Deno.connect(upstream);
    } catch {
      open.delete(client);
      return close(client);
    }
    open.add(server);
    const asked = new Map<string, ProxiedMessage>();
    const fromClient = (frame: NatsFrame): ProxiedMessage => {
      const message = { way: "request", subject: frame.subject, text: frame.text } as const;
      if (frame.reply !== "") asked.set(frame.reply, { ...message, way: "answer" });
      const oldest = asked.keys().next().value;
      if (asked.size > MAX_INBOXES && oldest !== undefined) asked.delete(oldest);
      return message;
    };
    const fromServer = (frame: NatsFrame): ProxiedMessage | undefined => {
      if (frame.reply.startsWith("$JS.ACK.")) {
        return { way: "delivery", subject: frame.reply, text: frame.text };
      }
      return asked.get(frame.subject);
    };
    await Promise.all([
      pump(client, server, (frame) => frame.kind === "publish" ? fromClient(frame) : undefined),
      pump(server, client, (frame) => frame.kind === "message" ? fromServer(frame) : undefined),
    ]);
  };

  /** Ends both connections when either ends: what is held is then written to nobody. */
  const pump = async (
    from: Deno.TcpConn,
    to: Deno.TcpConn,
    read: (frame: NatsFrame) => ProxiedMessage | undefined,
  ) => {
    const frames = createFrameReader();
    let writing = Promise.resolve();
    const write = (bytes: Uint8Array) => {
      writing = writing.then(() => writeAll(to, bytes)).catch(() => {});
      return writing;
    };
    try {
      for await (const chunk of from.readable) {
        for (const frame of frames.push(chunk)) {
          const message = read(frame);
          if (message === undefined || !points.holds(message)) await write(frame.raw);
          else {
            points.pass(message).then((fate) => fate === "pass" ? write(frame.raw) : undefined);
          }
        }
      }
    } catch {
      // Broken off, by whomever: the same as an end.
    } finally {
      for (const connection of [from, to]) {
        open.delete(connection);
        close(connection);
      }
    }
  };

  const accepting = (async () => {
    for await (const client of listener) {
      const served = serve(client).finally(() => connections.delete(served));
      connections.add(served);
    }
  })();
  return {
    url: `nats://127.0.0.1:${listener.addr.port}`,
    hold: (match) => points.hold(match),
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting.catch(() => {});
      for (const connection of open) close(connection);
      await Promise.all(connections);
    },
  };
}

async function writeAll(to: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await to.write(bytes.subarray(done));
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // Closed already.
  }
}
