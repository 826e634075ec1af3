import { createGitea } from "../clients/gitea/runner_service.ts";
import { connectNats } from "../clients/nats/connection.ts";
import { createControlStore } from "../clients/nats/control_store.ts";
import { createEventLog } from "../clients/nats/event_log.ts";
import { createLeaderKey } from "../clients/nats/leader_key.ts";
import { createQueue } from "../clients/nats/queue.ts";
import { createRecords } from "../clients/nats/records.ts";
import { ensureStreams } from "../clients/nats/streams.ts";
import { watchSvids } from "../clients/spiffe/workload_api.ts";
import { createBoard } from "../controller/board.ts";
import type { Backend } from "../controller/backend.ts";
import type { Config } from "../controller/config/config.ts";
import { createEngine, type Engine } from "../controller/engine.ts";
import { createLabelState } from "../controller/label_state.ts";
import { createEnvelopeCodec } from "../controller/model/envelope.ts";
import { type BackendName, BACKENDS, instanceOf } from "../controller/model/ids.ts";
import { stepsOf, unstartedSteps } from "../controller/model/steps.ts";
import { createPhaseStatistics } from "../controller/phases.ts";
import type { Recorder } from "../controller/recorder.ts";
import { createGiteaWatch } from "../controller/gitea_status.ts";
import { checkRegistration, createScheduler } from "../controller/scheduler.ts";
import { settleTask } from "../controller/settle.ts";
import { createSoloLeader } from "../controller/solo_leader.ts";
import { createCapabilities } from "../facade/capability.ts";
import { createLateEvents } from "../facade/late_events.ts";
import { createFacade } from "../facade/server.ts";
import { allOrNone } from "../lib/all_or_none.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Secret } from "../lib/secret.ts";
import { useApiToken } from "./gitea_rest.ts";
import { createLaunch } from "./launch.ts";
import { createOwnership } from "./ownership.ts";
import { createPlace } from "./place.ts";
import type { LateViews } from "./late_views.ts";
import type { Sources } from "./sources.ts";

/** What the environment, or the embedded profile, has supplied. */
export interface Parts {
  readonly gitea: { readonly url: string; readonly uuid: string; readonly token: Secret };
  readonly nats: Pick<
    Parameters<typeof connectNats>[0],
    "servers" | "user" | "password" | "credsFile" | "caFile"
  >;
  readonly capabilityKeys: readonly Secret[];
  /** Of a STATE_DIR that is locked: see `LeaderNote`. */
  readonly place?: string;
  readonly trustDomain: string;
  /** Workload API of this process. */
  readonly endpointSocket: string;
  readonly facade: {
    readonly hostname: string;
    readonly port: number;
    /** Null: made from the port that is listened on. */
    readonly url: string | null;
    readonly spiffeId: string;
  };
  readonly backends: readonly Backend[];
}

/** What the process gives to everything. */
export interface Surroundings {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly recorder: Recorder;
  readonly views: LateViews;
  readonly sources: Sources;
}

/** A running controller. */
export interface Controller extends AsyncDisposable {
  readonly engine: Engine;
  /**
   * Resolves when `signal` has aborted and everything has stopped, in the embedded profile executors,
   * too; rejects when it must not go on.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Fetch at once. */
  nudge(): void;
}

const CLAIM_TIMEOUT_MS = 240_000;
const READ_EVENTS_MS = 2_000;
/** The embedded profile promises to be gone within 12 s: for its executors, and for fetches in flight. */
const FAREWELL_MS = 8_000;
const EMBEDDED_GRACE_MS = 6_000;

/**
 * Connects to everything and puts the controller together. Waits for servers that may come; rejects
 * at once with a named error for what cannot become right (registration, credentials, streams).
 */
export async function startController(
  parts: Parts,
  around: Surroundings,
  signal: AbortSignal,
): Promise<Controller> {
  const { config, logger, clock, random, recorder, sources } = around;
  await using setup = new AsyncDisposableStack();
  const closing = new AbortController();
  setup.defer(() => closing.abort(new DOMException("Stopped", "AbortError")));
  const fenced = new AbortController();
  const onLost = (detail: string) => fenced.abort(new LeadershipLost(detail));

  const gitea = setup.use(createGitea(parts.gitea));
  const nats = setup.use(connectNats(parts.nats, { logger, clock }));
  sources.nats = () => nats.status();
  const giteaWatch = createGiteaWatch(clock, logger);
  sources.gitea = () => giteaWatch.status();
  const names = { stream: config.nats.stream, subjectBase: config.nats.subjectBase };
  // When one cannot become right, the other is not waited for.
  await allOrNone([
    (stop) => checkRegistration({ gitea, clock, logger, random, watch: giteaWatch }, stop),
    prepareNats,
  ], signal);

  const place = parts.place ?? null;
  const key = createLeaderKey(nats, { clock });
  const leadership = setup.use(
    createSoloLeader({ key, clock, logger, self: sources.self, place, onLost }),
  );
  sources.leadership = () => leadership.status();
  const guard = () => {
    fenced.signal.throwIfAborted();
    leadership.check();
  };

  const queue = createQueue(nats, { ...names, clock, logger });
  const records = setup.use(createRecords(nats, { clock, logger }));
  const events = setup.use(createEventLog(nats, { clock, logger }));

  const { endpointSocket: endpoint, trustDomain } = parts;
  const svids = setup.use(watchSvids(
    { endpoint, spiffeId: parts.facade.spiffeId, logger, clock },
    { signal },
  ));
  sources.spire = () => svids.status();

  const capabilities = createCapabilities(parts.capabilityKeys);
  const lateEvents = createLateEvents();
  const facade = setup.use(
    await createFacade(
      { svids, trustDomain, gitea, events: lateEvents, capabilities, recorder, logger, clock },
      { hostname: parts.facade.hostname, port: parts.facade.port, signal },
    ),
  );
  const facadeSince = clock.monotonic();

  const { defaultBackend } = config;
  const codec = createEnvelopeCodec(parts.capabilityKeys, { trustDomain, defaultBackend });
  const instance = await instanceOf(parts.gitea.uuid, config.namespace);
  const ownership = createOwnership({
    keys: parts.capabilityKeys,
    prefix: config.metadataPrefix,
    instance,
    trustDomain,
  });
  const statistics = createPhaseStatistics();
  const engine = setup.use(createEngine({
    gitea,
    queue,
    records,
    control: createControlStore(nats, { clock }),
    offers: facade.offers,
    backends: parts.backends,
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
    append: (entry) => events.append(entry),
    facadeSince: () => facadeSince,
    guard,
    onRecovered: () => facade.offers.complete(),
    onFenced: onLost,
  }, {
    instance,
    capacity: { pod: config.backends.pod.capacity, vm: config.backends.vm.capacity },
    zombieTimeoutMs: config.gitea.zombieTimeoutMs,
    heartbeatMaxRps: config.gitea.heartbeatMaxRps,
    claimTimeoutMs: CLAIM_TIMEOUT_MS,
    maxWaitMs: config.maxWaitMs,
  }));
  lateEvents.bind(engine.events);

  const enabled = parts.backends.map((b) => b.name);
  const labels = createLabelState({
    engine,
    clock,
    vmLabel: config.vmLabel,
    enabled: (name) => enabled.includes(name),
    pendingLimit: (name) => config.backends[name].pendingLimit,
  });
  const scheduler = createScheduler({
    gitea,
    queue,
    place: createPlace(codec, { trustDomain, defaultBackend }),
    settlePermanent: async ({ taskId, detail, steps: count }, stop) => {
      const text = `gitea-dynamic-runner: ${detail}`;
      const steps = unstartedSteps(count);
      await settleTask({ taskId, result: "failure", text, steps }, { gitea, clock }, stop);
    },
    onStored: engine.stored,
    labels: labels.labels,
    labelsChanged: labels.changed,
    flagsReady: () => Promise.resolve(),
    recorder,
    logger,
    clock,
    random,
    watch: giteaWatch,
  }, {
    capacity: enabled.reduce((sum, name) => sum + config.backends[name].capacity, 0),
    version: around.version,
    capabilities: config.executorCapabilities,
    fetchMaxRps: config.gitea.fetchMaxRps,
    ...(config.profile === "embedded" ? { graceMs: EMBEDDED_GRACE_MS } : {}),
  });
  const counts = sources.countQueue(queue, enabled);
  around.views.become(createBoard({
    ledger: engine.ledger,
    pools: engine.pools,
    statistics,
    clock,
    from: {
      version: around.version,
      profile: config.profile,
      enabled,
      effectiveConfig: config.effective,
      leader: () => sources.leader(engine.epoch()),
      sources: sources.all,
      flags: engine.flags,
      label: (name) => name === "vm" ? engine.flags(name).label?.value ?? config.vmLabel : name,
      counts: counts.of,
      strangers: engine.strangers,
      ready: engine.ready,
      nextFetchAt: () => null,
      async readEvents({ assignment, beforeSeq, limit }) {
        // A page must not wait for a server that is away.
        using patience = clock.timeout(READ_EVENTS_MS);
        return await events.read({
          ...(assignment === undefined ? {} : { assignment }),
          ...(beforeSeq === undefined ? {} : { fromSeq: beforeSeq - 1 }),
          limit,
          newestFirst: assignment === undefined,
        }, { signal: AbortSignal.any([closing.signal, patience.signal]) });
      },
    },
  }));
  const owned = setup.move();
  return {
    engine,
    nudge: () => scheduler.nudge(),
    async run(stop) {
      const either = AbortSignal.any([stop, fenced.signal]);
      await leadership.acquire(either);
      // Kept until nothing acts any more, not only until the stop begins.
      const ended = new AbortController();
      await Promise.all([
        leadership.hold(ended.signal),
        lead(either).finally(() => ended.abort()),
      ]);
      fenced.signal.throwIfAborted();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };

  async function lead(stop: AbortSignal): Promise<void> {
    await engine.takeOver(stop);
    const capabilitiesPassedOn = passOnCapabilities(stop);
    await Promise.all([
      act(stop),
      scheduler.run(stop),
      labels.run(stop),
      counts.run(stop),
      capabilitiesPassedOn,
      useApiToken({
        config,
        giteaUrl: parts.gitea.url,
        instance,
        gitea,
        engine,
        scheduler,
        queue,
        records,
        clock,
        logger,
        guard,
      }, stop),
    ]);
  }

  /** Executors end while the scheduler lets its last fetches finish: neither needs the other. */
  async function act(stop: AbortSignal): Promise<void> {
    await engine.run(stop);
    if (config.profile !== "embedded" || fenced.signal.aborted) return;
    using limit = clock.timeout(FAREWELL_MS);
    await engine.endExecutors(limit.signal);
  }

  async function prepareNats(stop: AbortSignal): Promise<void> {
    await nats.ready({ signal: stop });
    let waiting: string | null = null;
    sources.nats = () => {
      const status = nats.status();
      return waiting === null ? status : { ...status, kind: "disconnected", detail: waiting };
    };
    const onWait = ({ message }: Error) => {
      const detail = `${message}: JetStream is not enabled on this server, or not up yet`;
      if (waiting !== detail) logger.warn("JetStream cannot be used", { error: detail });
      waiting = detail;
    };
    const { made, bucketLost } = await ensureStreams(nats, names, { clock, signal: stop, onWait });
    waiting = null;
    if (made.length > 0) logger.info("streams made", { component: "queue", streams: made });
    if (bucketLost) {
      logger.error("records lost", {
        component: "queue",
        error: "the bucket CI_RUNNER_STATE was missing beside an existing stream",
      });
    }
  }

  /** Executors are told what Gitea can do as soon as Gitea has told us. */
  async function passOnCapabilities(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      facade.setDeclared(scheduler.serverCapabilities());
      await clock.sleep(1_000, stop).catch(() => {});
    }
  }
}

/** Another controller leads: this one has stopped acting and must end. */
export class LeadershipLost extends Error {
  override readonly name = "LeadershipLost";

  /** `detail` says what was seen. */
  constructor(detail: string) {
    super(`scheduler leadership lost: ${detail}`);
  }
}

/** Backends that this configuration runs. */
export function enabledBackends(config: Config): BackendName[] {
  return BACKENDS.filter((name) => config.backends[name].enabled);
}
