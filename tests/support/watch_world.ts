import assert from "node:assert/strict";
import { failureOfAnswer } from "../../clients/kubernetes/answer.ts";
import { readPieces } from "../../clients/kubernetes/pieces.ts";
import { createHealthKeeper } from "../../lib/source_health.ts";
import { Refused, type Request, type Transport } from "../../clients/kubernetes/transport.ts";
import { listAndWatch } from "../../clients/kubernetes/watch.ts";
import { createFakeClock, type FakeClock } from "../../lib/fake_clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import type { Logger } from "../../lib/logger.ts";
import { createFakeApiServer, type FakeApiServer } from "../fakes/api_server.ts";

/** An object of the fake as a consumer reads it. */
export interface Thing {
  readonly name: string;
  readonly version: number;
}

/** What the consumer was told, in order. */
export type Told =
  | { readonly kind: "listed"; readonly items: readonly Thing[] }
  | { readonly kind: "changed" | "gone"; readonly item: Thing };

/** A consumer of list-and-watch before a fake API server, on a clock that the test moves. */
export interface WatchWorld extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly server: FakeApiServer;
  readonly told: readonly Told[];
  /** What the consumer believes that there is. */
  readonly believed: ReadonlyMap<string, number>;
  readonly keeper: ReturnType<typeof createHealthKeeper>;
  /** Events of the recorder. */
  readonly heard: number;
  /** Connections that were said to be silent. */
  readonly suspected: number;
  readonly logged: readonly string[];
  /** Settles what is under way, and lets `ms` pass. */
  pass(ms: number): Promise<void>;
  /** True when the iterable has ended. */
  readonly ended: boolean;
  abort(): void;
}

/** Starts a {@link WatchWorld}; `pageSize` and `decode` are the target's. */
export function startWatchWorld(
  options: {
    readonly pageSize?: number;
    readonly decode?: (thing: Thing) => Thing | undefined;
    readonly random?: () => number;
    readonly prepare?: (server: FakeApiServer) => void;
  } = {},
): WatchWorld {
  const clock = createFakeClock();
  const server = createFakeApiServer(() => clock.monotonic());
  options.prepare?.(server);
  const keeper = createHealthKeeper(clock);
  const told: Told[] = [];
  const believed = new Map<string, number>();
  const logged: string[] = [];
  const stop = new AbortController();
  const say = (message: string) => void logged.push(message);
  const logger: Logger = { debug: say, info: say, warn: say, error: say, child: () => logger };
  let heard = 0;
  let suspected = 0;
  let ended = false;

  const decode = options.decode ?? ((thing: Thing) => thing);
  const events = listAndWatch({
    source: "things",
    path: "/apis/x/v1/things",
    ...options.pageSize === undefined ? {} : { pageSize: options.pageSize },
    decode(object) {
      const metadata = objectOrEmpty(object.metadata);
      return decode({ name: String(metadata.name), version: Number(metadata.resourceVersion) });
    },
  }, {
    signal: stop.signal,
    clock,
    random: options.random ?? (() => 0),
    logger,
    keeper,
    recorder: { watchEvent: () => void heard++ },
    transport: transportTo(server, { onSuspect: () => void suspected++ }),
  });
  const consumer = (async () => {
    for await (const event of events) {
      told.push(event);
      if (event.kind === "listed") {
        believed.clear();
        for (const { name, version } of event.items) believed.set(name, version);
      } else if (event.kind === "changed") believed.set(event.item.name, event.item.version);
      else believed.delete(event.item.name);
    }
    ended = true;
  })();

  return {
    clock,
    server,
    told,
    believed,
    keeper,
    logged,
    get heard() {
      return heard;
    },
    get suspected() {
      return suspected;
    },
    get ended() {
      return ended;
    },
    pass: (ms) => clock.advance(ms),
    abort: () => stop.abort(new DOMException("Stopped", "AbortError")),
    async [Symbol.asyncDispose]() {
      stop.abort(new DOMException("Stopped", "AbortError"));
      await clock.advance(0);
      await consumer;
      assert.equal(clock.pending, 0, "nothing sleeps after the end");
    },
  };
}

/** HTTP without a network. */
function transportTo(
  server: FakeApiServer,
  { onSuspect }: { readonly onSuspect: () => void },
): Pick<Transport, "exchange" | "open"> {
  const ask = async ({ url, method, headers }: Request, signal: AbortSignal) => {
    signal.throwIfAborted();
    await Promise.resolve();
    return server.handle(
      new globalThis.Request(`http://api${url}`, { method, headers: { ...headers } }),
    );
  };
  const refused = async (response: Response) =>
    new Refused(failureOfAnswer({
      status: response.status,
      headers: response.headers,
      text: await response.text(),
    }));
  return {
    async exchange(request, signal) {
      const response = await ask(request, signal);
      if (!response.ok) throw await refused(response);
      return { status: response.status, headers: response.headers, text: await response.text() };
    },
    async open(request, { signal }) {
      const response = await ask(request, signal);
      const { body } = response;
      if (!response.ok || body === null) throw await refused(response);
      const pieces = readPieces(body, signal);
      return {
        read: () => pieces.read(),
        suspect: onSuspect,
        [Symbol.asyncDispose]: () => pieces[Symbol.asyncDispose](),
      };
    },
  };
}
