import { createGitea } from "../clients/gitea/runner_service.ts";
import { createControlStore } from "../clients/nats/control_store.ts";
import { createEventLog } from "../clients/nats/event_log.ts";
import { guardConnection } from "../clients/nats/guarded_connection.ts";
import { createQueue } from "../clients/nats/queue.ts";
import { createRecords } from "../clients/nats/records.ts";
import type { Backend } from "../controller/backend.ts";
import { createEngine } from "../controller/create_engine.ts";
import type { Engine } from "../controller/engine.ts";
import { guardPorts } from "../controller/leadership/guarded.ts";
import { createLabelState, type LabelState } from "../controller/label_state.ts";
import { createEnvelopeCodec } from "../controller/model/envelope.ts";
import { instanceOf } from "../controller/model/ids.ts";
import { stepsOf, unstartedSteps } from "../controller/model/steps.ts";
import { createPhaseStatistics, type PhaseStatistics } from "../controller/views/phases.ts";
import { QueueError } from "../controller/queue.ts";
import { createScheduler, type Scheduler } from "../controller/scheduler.ts";
import { settleTask } from "../controller/settle.ts";
import { createCapabilities } from "../facade/capability.ts";
import { createLateEvents } from "../facade/late_events.ts";
import { createFacade, type Facade } from "../facade/server.ts";
import type { Connections } from "./connections.ts";
import type { Surroundings } from "./controller.ts";
import { useApiToken } from "./gitea_rest.ts";
import { createLaunch } from "./launch.ts";
import type { Leading } from "./leading.ts";
import { createOperating, type Operating } from "./operating.ts";
import { createOwnership } from "./ownership.ts";
import type { Parts } from "./parts.ts";
import { createPlace } from "./place.ts";

/** Everything that only the leader has: facade, engine, scheduler. Disposing closes the facade first. */
export interface Acting extends AsyncDisposable {
  readonly engine: Engine;
  readonly scheduler: Scheduler;
  readonly statistics: PhaseStatistics;
  readonly operating: Operating;
  /** As they are: what is done through them is guarded elsewhere. */
  readonly backends: readonly Pick<Backend, "name" | "list" | "others">[];
  /**
   * Takes over, then works until aborted; resolves when fetches in flight are stored and, in the
   * embedded profile, executors have ended. Nothing but such a store is done after the lead was lost.
   */
  run(signal: AbortSignal): Promise<void>;
}

const CLAIM_TIMEOUT_MS = 240_000;
/** The embedded profile promises to be gone within 12 s: for its executors, and for fetches in flight. */
const FAREWELL_MS = 8_000;
const EMBEDDED_GRACE_MS = 6_000;

/** Opens the facade and puts engine and scheduler together; only while leading. */
export async function startActing(
  parts: Parts,
  around: Surroundings & { readonly connections: Connections; readonly leading: Leading },
  signal: AbortSignal,
): Promise<Acting> {
  const { config, logger, clock, random, recorder, connections, leading } = around;
  const { guard, lost } = leading;
  await using setup = new AsyncDisposableStack();
  const own = openOwn(parts, { ...around, stack: setup });
  const backends = await parts.backends(guard, own.records);
  const ports = guardPorts({ ...own, backends }, {
    clock,
    guard,
    publish: (message, call) => connections.queue.publish(message, call),
  });
  const { trustDomain, capabilityKeys } = parts;
  const events = setup.use(
    createEventLog(own.nats, { clock, logger, guard: () => maySend(leading) }),
  );
  const capabilities = createCapabilities(capabilityKeys);
  const lateEvents = createLateEvents();
  const facade = setup.use(
    await createFacade({
      svids: connections.svids,
      trustDomain,
      gitea: ports.gitea,
      events: lateEvents,
      capabilities,
      recorder,
      logger,
      clock,
    }, { hostname: parts.facade.hostname, port: parts.facade.port, signal }),
  );
  const facadeSince = clock.monotonic();
  const instance = await instanceOf(parts.gitea.uuid, config.namespace);
  const { defaultBackend, metadataPrefix: prefix } = config;
  const codec = createEnvelopeCodec(capabilityKeys, { trustDomain, defaultBackend });
  const ownership = createOwnership({ keys: capabilityKeys, prefix, instance, trustDomain });
  const statistics = createPhaseStatistics();
  const announcer = parts.announce?.({
    executorOf: (id) => engine.ledger.get(id)?.executor ?? null,
    guard,
  });
  const engine = setup.use(createEngine({
    ...ports,
    offers: facade.offers,
    ownership,
    statistics,
    clock,
    logger,
    recorder,
    random,
    open: (data) => codec.open(data),
    stepsOf,
    nonce: () => crypto.getRandomValues(new Uint8Array(16)).toHex(),
    identify: ownership.identify,
    launch: createLaunch({
      facadeUrl: parts.facade.url ?? `https://127.0.0.1:${facade.port}`,
      facadeSpiffeId: parts.facade.spiffeId,
      giteaUrl: parts.gitea.url,
      capability: (id) => capabilities.issue(id),
    }),
    append(entry) {
      events.append(entry);
      announcer?.write(entry);
    },
    facadeSince: () => facadeSince,
    guard,
    onRecovered: () => facade.offers.complete(),
    onFenced: leading.fence,
  }, {
    instance,
    capacity: { pod: config.backends.pod.capacity, vm: config.backends.vm.capacity },
    zombieTimeoutMs: config.gitea.zombieTimeoutMs,
    heartbeatMaxRps: config.gitea.heartbeatMaxRps,
    claimTimeoutMs: CLAIM_TIMEOUT_MS,
    maxWaitMs: config.maxWaitMs,
  }));
  lateEvents.bind(engine.events);
  const enabled = backends.map((b) => b.name);
  const labels = createLabelState({
    engine,
    clock,
    vmLabel: config.vmLabel,
    enabled: (name) => enabled.includes(name),
    pendingLimit: (name) => config.backends[name].pendingLimit,
  });
  const scheduler = makeScheduler({ ...around, facade, engine, labels, ports }, {
    capacity: enabled.reduce((sum, name) => sum + config.backends[name].capacity, 0),
    place: createPlace(codec, { trustDomain, defaultBackend }),
  });

  const operating = setup.use(createOperating({
    engine,
    labels,
    scheduler,
    enabled,
    config,
    nats: connections.nats,
    clock,
    logger,
    random,
    resign: leading.resign,
    guard,
  }));

  /** Executors end while the scheduler lets its last fetches finish: neither needs the other. */
  const serve = async (stop: AbortSignal) => {
    await engine.run(stop);
    if (config.profile !== "embedded" || lost.aborted) return;
    using limit = clock.timeout(FAREWELL_MS);
    await engine.endExecutors(limit.signal);
  };
  const closeFacade = async () => await facade[Symbol.asyncDispose]();

  const owned = setup.move();
  return {
    engine,
    scheduler,
    statistics,
    operating,
    backends,
    async run(stop) {
      // Executors must find the next leader, not one that can do nothing for them any more. From the
      // first moment on: the lead can be lost while executors are still being taken over.
      const closing = lost.aborted ? closeFacade() : onceAborted(lost, closeFacade);
      // Only a lost lead waits for it, below.
      closing.catch(() => {});
      await engine.takeOver(stop);
      await operating.actions.start(stop);
      await Promise.all([
        serve(stop),
        scheduler.run(stop),
        labels.run(stop),
        announcer?.run(stop),
        useApiToken({
          ...ports,
          runnerId: own.gitea.runnerId,
          config,
          giteaUrl: parts.gitea.url,
          instance,
          engine,
          scheduler,
          clock,
          logger,
          guard,
        }, stop),
      ]);
      if (lost.aborted) await closing;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What `work` does once the signal has aborted; pending until then. */
function onceAborted(signal: AbortSignal, work: () => PromiseLike<void>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => work().then(resolve, reject), { once: true });
  return promise;
}

/** The leader's own ways to Gitea and NATS, by which nothing leaves once it may not act any more. */
function openOwn(
  { gitea }: Parts,
  { config, clock, logger, connections, leading, stack }: Surroundings & {
    readonly connections: Connections;
    readonly leading: Leading;
    readonly stack: AsyncDisposableStack;
  },
) {
  const { stream, subjectBase } = config.nats;
  const nats = guardConnection(connections.nats, () => maySend(leading));
  return {
    nats,
    gitea: stack.use(createGitea({ ...gitea, guard: leading.guard })),
    queue: createQueue(nats, { stream, subjectBase, clock, logger }),
    records: stack.use(createRecords(nats, { clock, logger })),
    control: createControlStore(nats, { clock }),
  };
}

/** At NATS everything waits while it is not sure who leads, and ends when it is sure that another does. */
function maySend({ lost, guard }: Leading): void {
  lost.throwIfAborted();
  try {
    guard();
  } catch (cause) {
    throw new QueueError("unavailable", "Send to NATS: it is not sure who leads", { cause });
  }
}

function makeScheduler(
  around: Surroundings & {
    readonly connections: Connections;
    readonly facade: Facade;
    readonly engine: Engine;
    readonly labels: LabelState;
    readonly ports: ReturnType<typeof guardPorts>;
  },
  options: { readonly capacity: number; readonly place: ReturnType<typeof createPlace> },
): Scheduler {
  const { config, clock, logger, random, recorder, engine, labels, ports } = around;
  const { gitea, queue } = ports;
  return createScheduler({
    gitea,
    queue,
    place: options.place,
    settlePermanent: async ({ taskId, detail, steps: count }, stop) => {
      const text = `gitea-dynamic-runner: ${detail}`;
      const steps = unstartedSteps(count);
      await settleTask({ taskId, result: "failure", text, steps }, { gitea, clock }, stop);
    },
    onStored: engine.stored,
    labels: labels.labels,
    labelsChanged: labels.changed,
    // The engine has read them when it took over.
    flagsReady: () => Promise.resolve(),
    // Executors are told what Gitea can do as soon as Gitea has told us.
    onServerCapabilities: (value) => around.facade.setDeclared(value),
    recorder,
    logger,
    clock,
    random,
    watch: around.connections.giteaWatch,
  }, {
    capacity: options.capacity,
    version: around.version,
    capabilities: config.executorCapabilities,
    fetchMaxRps: config.gitea.fetchMaxRps,
    ...(config.profile === "embedded" ? { graceMs: EMBEDDED_GRACE_MS } : {}),
  });
}
