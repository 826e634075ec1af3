import { askApi, demandApi } from "../../clients/nats/api.ts";
import { createBucket } from "../../clients/nats/bucket.ts";
import { BUCKET_STREAM } from "../../clients/nats/streams.ts";
import { connectTo } from "../support/nats_world.ts";
import { systemClock } from "../../lib/clock.ts";
import {
  type ControllerPlace,
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { startNats, type TestNats } from "../support/nats.ts";
import { type NatsProxy, startNatsProxy } from "../support/nats_proxy.ts";
import { openOutside, type Outside, type Side } from "./side.ts";
import { createWatcher, type Watcher } from "./watcher.ts";

/** One controller with servers of its own, and proxies between it and them. */
export interface World<S extends Side = Side> extends AsyncDisposable {
  readonly side: S;
  readonly place: ControllerPlace;
  readonly nats: TestNats;
  readonly natsProxy: NatsProxy;
  /** What the API said all along. */
  readonly watcher: Watcher;
  /** JSON of the controller that runs now. */
  get<T>(path: string): Promise<T>;
  /** Sends JSON to it and reads its answer. */
  post<T>(path: string, body: unknown): Promise<T>;
  /** Starts a controller and waits until it has recovered; one at a time. */
  start(): Promise<void>;
  /** SIGKILL to the controller alone. */
  kill(): Promise<void>;
  /** Messages in the stream, and records in the bucket. */
  stored(): Promise<{ readonly messages: number; readonly records: readonly string[] }>;
  /** Deletes the bucket of records and flags, as somebody by hand. */
  loseBucket(): Promise<void>;
  /** Everything that its controllers have printed. */
  log(): Promise<string>;
}

/** What runs the jobs: the product's sample runner, or the official one at this path. */
export type Runner = { readonly kind: "sample" } | {
  readonly kind: "official";
  readonly path: string;
};

/** How a world is made. */
export interface WorldOptions<S extends Side> {
  readonly runner: Runner;
  readonly capacity?: number;
  readonly env?: Readonly<Record<string, string>>;
  openSide(outside: Outside): Promise<S & AsyncDisposable>;
}

/** Opens a {@link World} with its controller running. Rejects with the end of its log when that fails. */
export async function openWorld<S extends Side>(options: WorldOptions<S>): Promise<World<S>> {
  await using stack = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "gdr-faults-" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  await Deno.chmod(folder, 0o711);
  const nats = stack.use(await startNats({ jetstreamSync: "always", config: "" }));
  const { hostname, port } = new URL(nats.url);
  const natsProxy = stack.use(startNatsProxy({ hostname, port: Number(port) }));
  const connection = stack.use(connectTo(nats));
  const bucket = createBucket(connection, { clock: systemClock });
  const side = stack.use(await options.openSide(await openOutside(folder)));
  const place = stack.use(await createControllerPlace());

  let controller: ControllerProcess | undefined;
  let url = "";
  let earlier = "";
  const ask = async <T>(path: string, init: RequestInit): Promise<T> => {
    const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(5_000) });
    const body = await response.text();
    if (!response.ok) throw new Error(`Ask "${path}": ${response.status} ${body.slice(0, 200)}`);
    return JSON.parse(body) as T;
  };
  const get = <T>(path: string) => ask<T>(path, {});
  const kill = async () => {
    const killed = controller;
    controller = undefined;
    url = "";
    if (killed === undefined) return;
    await killed[Symbol.asyncDispose]();
    earlier += await killed.text();
  };
  stack.defer(kill);
  const watcher = stack.use(createWatcher(get));

  const start = async () => {
    const started = await startController({
      stateDir: place.stateDir,
      env: {
        PROFILE: "embedded",
        GITEA_URL: side.proxy.url,
        GITEA_RUNNER_UUID: side.uuid,
        GITEA_RUNNER_TOKEN: side.token,
        NATS_URL: natsProxy.url,
        POD_CAPACITY: String(options.capacity ?? 2),
        VM_CAPACITY: "0",
        LOG_FORMAT: "json",
        ...options.runner.kind === "official" ? { CI_RUNNER_BIN: options.runner.path } : {},
        ...options.env,
      },
    });
    controller = started;
    url = await started.url();
    await eventually(async () => (await get<{ ready: boolean }>("/api/v1/status")).ready, {
      what: "the controller to have recovered",
      timeoutMs: 40_000,
      everyMs: 50,
    });
  };
  const world: World<S> = {
    side,
    place,
    nats,
    natsProxy,
    watcher,
    get,
    post: (path, body) =>
      ask(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    start,
    kill,
    async stored() {
      const call = { signal: AbortSignal.timeout(5_000) };
      const stream = await askApi(connection, { path: "STREAM.INFO.CI_RUNNER" }, call);
      if (stream.kind === "error") throw new Error(`Look at the stream: ${stream.description}`);
      const { messages } = stream.body["state"] as { readonly messages: number };
      const records = await bucket.list("task.*", call);
      return { messages, records: records.map(({ key }) => key) };
    },
    async loseBucket() {
      const path = `STREAM.DELETE.${BUCKET_STREAM}`;
      const call = { signal: AbortSignal.timeout(5_000) };
      await demandApi(connection, { path, action: "Delete the bucket" }, call);
    },
    log: async () => earlier + (controller === undefined ? "" : await controller.text()),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  try {
    await start();
  } catch (error) {
    const tail = (await world.log()).trimEnd().split("\n").slice(-15).join("\n");
    throw new Error(`${error instanceof Error ? error.message : error}\n${tail}`, { cause: error });
  }
  const owned = stack.move();
  return world;
}
