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
import { createLabelState } from "../controller/label_state.ts";
import { createEnvelopeCodec } from "../controller/model/envelope.ts";
import { instanceOf } from "../controller/model/ids.ts";
import { stepsOf } from "../controller/model/steps.ts";
import { createPhaseStatistics, type PhaseStatistics } from "../controller/views/phases.ts";
import { QueueError } from "../controller/queue.ts";
import type { Scheduler } from "../controller/scheduler.ts";
import { createTraces, type Traces } from "../controller/traces/traces.ts";
import { createCapabilities } from "../facade/capability.ts";
import { createLateEvents } from "../facade/late_events.ts";
import { aborted } from "../lib/abortable.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { together } from "../lib/together.ts";
import { createFacade } from "../facade/server.ts";
import type { Connections } from "./connections.ts";
import type { Surroundings } from "./controller.ts";
import { useApiToken } from "./gitea_rest.ts";
import { createLaunch } from "./launch.ts";
import type { Leading } from "./leading.ts";
import { createOperating, type Operating } from "./operating.ts";
import { createOwnIdentity } from "./own_identity.ts";
import { createOwnership } from "./ownership.ts";
import type { Parts } from "./parts.ts";
import { createPlace } from "./place.ts";
import { makeScheduler } from "./scheduling.ts";
import { openTraces, tracedPlace } from "./traces.ts";

/** Everything that only the leader has: facade, engine, scheduler. Disposing closes the facade first. */
export interface Acting extends AsyncDisposable {
  readonly engine: Engine;
  readonly scheduler: Scheduler;
  readonly statistics: PhaseStatistics;
  readonly operating: Operating;
  /** Undefined where they go nowhere. */
  readonly traces: Traces | undefined;
  /** As they are: what is done through them is guarded elsewhere. */
  readonly backends: readonly Pick<Backend, "name" | "list" | "others">[];
  /**
   * Takes over, then works until aborted; resolves when fetches in flight are stored and, in the
   * embedded profile, executors have ended, if `ordered` has aborted: after a failure they go on, as after
   * a crash. Nothing but such a store is done after the lead was lost.
   */
  run(signal: AbortSignal, ordered: AbortSignal): Promise<void>;
}

/** Of one assignment, for its trace. */
const MAX_EVENTS = 10_000;
const CLAIM_TIMEOUT_MS = 240_000;
/** The embedded profile promises to be gone within 12 s. */
const FAREWELL_MS = 8_000;

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
  const sink = await openTraces(config, around);
  const events = createEventLog(own.nats, { clock, logger, guard: () => maySend(leading) });
  // At the end each may wait seconds for its server: neither for the other's.
  setup.defer(async () => {
    await Promise.all([sink?.[Symbol.asyncDispose](), events[Symbol.asyncDispose]()]);
  });
  const traces = sink && createTraces({
    registration: parts.gitea.uuid,
    sink,
    clock,
    logger,
    tasks: setup.use(createTaskGroup(logger)),
    history: (assignment, stop) => events.read({ assignment, limit: MAX_EVENTS }, { signal: stop }),
  });
  const identity = createOwnIdentity(connections.svids, { clock, logger });
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
      onCall: (id, call) => traces?.called(id, call),
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
      traceparent: (id) => traces?.parentOf(id),
    }),
    append(entry) {
      events.append(entry);
      announcer?.write(entry);
    },
    facadeSince: () => facadeSince,
    cutOff: identity.cutOff,
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
  traces?.follow(engine.ledger);
  lateEvents.bind(traces?.noting(engine.events) ?? engine.events);
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
    place: tracedPlace(createPlace(codec, { trustDomain, defaultBackend }), traces),
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
  const serve = async (stop: AbortSignal, ordered: AbortSignal) => {
    await engine.run(stop);
    if (config.profile !== "embedded" || lost.aborted || !ordered.aborted) return;
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
    traces,
    backends,
    async run(stop, ordered) {
      // Executors must find the next leader, not one that can do nothing for them any more. From the
      // first moment on: the lead can be lost while executors are still being taken over.
      const closing = aborted(lost).then(closeFacade);
      // Only a lost lead waits for it, below.
      closing.catch(() => {});
      await engine.takeOver(stop);
      await operating.actions.start(stop);
      await together([
        (signal) => serve(signal, ordered),
        scheduler.run,
        labels.run,
        (signal) => identity.watch(engine.reachChanged, signal),
        ...announcer === undefined ? [] : [announcer.run],
        (signal) =>
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
          }, signal),
      ], stop);
      if (lost.aborted) await closing;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
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
