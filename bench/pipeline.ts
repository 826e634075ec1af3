import { connectNats } from "../clients/nats/connection.ts";
import { createEventLog } from "../clients/nats/event_log.ts";
import { createQueue } from "../clients/nats/queue.ts";
import { createRecords } from "../clients/nats/records.ts";
import { ensureStreams } from "../clients/nats/streams.ts";
import { createEngine } from "../controller/create_engine.ts";
import type { JournalEntry } from "../controller/journal.ts";
import type { AssignmentInfo } from "../controller/model/assignment_info.ts";
import { createEnvelopeCodec } from "../controller/model/envelope.ts";
import { instanceOf } from "../controller/model/ids.ts";
import { stepsOf } from "../controller/model/steps.ts";
import { createPhaseStatistics } from "../controller/views/phases.ts";
import { NO_FLAGS } from "../controller/records.ts";
import { noRecorder } from "../controller/recorder.ts";
import { createScheduler } from "../controller/scheduler.ts";
import { createRegistry } from "../facade/registry.ts";
import { createRelay } from "../facade/relay.ts";
import { createLateEvents } from "../facade/late_events.ts";
import { untilAborted } from "../lib/abortable.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { Secret } from "../lib/secret.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { sampleTask } from "../tests/support/tasks.ts";
import { createOwnership } from "../wiring/ownership.ts";
import { createPlace } from "../wiring/place.ts";
import { createMemoryRecords } from "./memory_records.ts";
import { createNoOpBackend } from "./no_op_backend.ts";
import type { HandOver } from "./raw_queue.ts";

const TRUST_DOMAIN = "bench.example";
const CAPACITY = 100_000;

/**
 * The controller's own parts as `wiring/` joins them: fetchers, sealed envelopes, JetStream, processor,
 * `decide()`, worker, registry, claim, DoubleAck. Fakes are at the two ends only: Gitea in memory, and
 * a backend that does nothing, whose executors claim as soon as their identity is bound.
 *
 * `stores` says what is written to JetStream beside the message: nothing, the records, or records and
 * history as in production.
 */
export async function startPipeline(
  nats: { readonly url: string; readonly user: string | null; readonly password: string | null },
  options: {
    readonly stores: "nothing" | "records" | "records_and_history";
    readonly fetchers: number;
  },
): Promise<HandOver & AsyncDisposable> {
  const clock = systemClock;
  const logger = silentLogger;
  const base = { clock, logger };
  await using setup = new AsyncDisposableStack();
  const stop = new AbortController();
  const connection = setup.use(connectNats({
    servers: [nats.url],
    user: nats.user,
    password: nats.password === null ? null : new Secret(nats.password),
    credsFile: null,
    caFile: null,
  }, base));
  const call = { signal: stop.signal };
  const names = { stream: `BENCH_${options.stores}`, subjectBase: `bench.${options.stores}` };
  await connection.ready(call);
  await ensureStreams(connection, names, { clock, ...call });
  const queue = createQueue(connection, { ...names, ...base });
  const history = options.stores === "records_and_history"
    ? setup.use(createEventLog(connection, base))
    : null;
  const records = options.stores === "nothing"
    ? createMemoryRecords()
    : setup.use(createRecords(connection, base));

  const keys = [new Secret("k".repeat(32))];
  const codec = createEnvelopeCodec(keys, { trustDomain: TRUST_DOMAIN, defaultBackend: null });
  const instance = await instanceOf("00000000-0000-0000-0000-000000000000", "bench");
  const ownership = createOwnership({
    keys,
    prefix: "bench.example",
    instance,
    trustDomain: TRUST_DOMAIN,
  });
  const gitea = createFakeGitea();
  const events = createLateEvents();
  const registry = createRegistry({
    clock,
    relayFor: (info, offset) => createRelay({ gitea, events, ...base }, info, offset),
    ended() {},
  });
  const executors = setup.use(createTaskGroup(logger));
  let waiting: { acked: number; readonly count: number; readonly done: () => void } | null = null;

  /** What an executor and the facade do from its first call until its runner has the task. */
  const claim = async ({ id, identity }: AssignmentInfo, signal: AbortSignal) => {
    await registry.waitOffer(id, identity.spiffeId, signal);
    const answer = await events.claim(id, "gate", signal);
    if (answer.kind !== "granted") throw new Error(`Claim ${id}: ${answer.kind}`);
    registry.claimed(id, "gate", answer.logOffset);
    registry.delivered(id);
    events.updated(id);
  };
  const append = (entry: JournalEntry) => {
    history?.append(entry);
    if (entry.event !== "acked" || waiting === null) return;
    if (++waiting.acked === waiting.count) waiting.done();
  };
  const engine = setup.use(createEngine({
    gitea,
    queue,
    records,
    // Several pipelines at a time: none is the only leader.
    control: {
      flags: () => Promise.resolve(NO_FLAGS),
      takeOver: () => Promise.resolve(1),
      epoch: () => Promise.resolve(1),
      watchEpoch() {},
    },
    offers: registry,
    backends: [
      createNoOpBackend((info) => executors.spawn("claim", (signal) => claim(info, signal))),
    ],
    ownership,
    statistics: createPhaseStatistics(),
    recorder: noRecorder,
    random: Math.random,
    ...base,
    open: (data) => codec.open(data),
    stepsOf,
    nonce: () => crypto.getRandomValues(new Uint8Array(16)).toHex(),
    identify: ownership.identify,
    launch: () => ({}),
    append,
    facadeSince: () => 0,
    guard() {},
    onRecovered: () => registry.complete(),
    onFenced(detail) {
      throw new Error(detail);
    },
  }, {
    instance,
    capacity: { pod: CAPACITY, vm: 0 },
    zombieTimeoutMs: 600_000,
    heartbeatMaxRps: 5,
    claimTimeoutMs: 240_000,
  }));
  events.bind(engine.events);
  const scheduler = createScheduler({
    gitea,
    queue,
    place: createPlace(codec, { trustDomain: TRUST_DOMAIN, defaultBackend: null }),
    settlePermanent: ({ taskId, detail }) => Promise.reject(new Error(`Task ${taskId}: ${detail}`)),
    onStored: engine.stored,
    labels: () => ["self-hosted", "pod"],
    labelsChanged: untilAborted,
    flagsReady: () => Promise.resolve(),
    recorder: noRecorder,
    random: Math.random,
    ...base,
  }, { capacity: options.fetchers, version: "bench", capabilities: [], fetchMaxRps: 2 });

  await engine.takeOver(stop.signal);
  const running = Promise.all([engine.run(stop.signal), scheduler.run(stop.signal)]);
  setup.defer(async () => {
    stop.abort();
    await running.catch(() => undefined);
  });
  const owned = setup.move();
  // Ids of their own: the pipelines of one bench share the bucket.
  let next = BigInt(Date.now()) * 1_000n;
  return {
    async run(count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting = { acked: 0, count, done: resolve };
      const tasks = Array.from({ length: count }, () => sampleTask({ id: next++ }));
      const started = performance.now();
      for (const task of tasks) gitea.queue(task);
      scheduler.nudge();
      await promise;
      return (performance.now() - started) / 1_000;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
