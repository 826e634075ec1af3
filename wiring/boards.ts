import { createAuditReader } from "../clients/nats/audit_log.ts";
import type { NatsConnection } from "../clients/nats/connection.ts";
import { createOperationStore } from "../clients/nats/operation_store.ts";
import { type AuditLog, auditPage } from "../controller/actions/audit.ts";
import { type BoardSources, createBoard } from "../controller/views/board.ts";
import type { Config } from "../controller/config/config.ts";
import type { StoredEntry } from "../controller/journal.ts";
import { createLedger } from "../controller/ledger.ts";
import { DEFAULT_DELAYS } from "../controller/model/decision.ts";
import type { BackendName } from "../controller/model/ids.ts";
import type { AuditQuery } from "../controller/views/operating_views.ts";
import { newestFirst, operationsPage, operationView } from "../controller/actions/operation.ts";
import type { Operations } from "../controller/actions/operations.ts";
import type { ReadEvents } from "../controller/views/history_pages.ts";
import { createStandbyViews } from "../controller/views/standby_views.ts";
import { createPhaseStatistics } from "../controller/views/phases.ts";
import { createPool } from "../controller/pool.ts";
import { NO_FLAGS } from "../controller/records.ts";
import type { Views } from "../controller/views/views.ts";
import type { Clock } from "../lib/clock.ts";
import type { Acting } from "./acting.ts";
import type { Connections } from "./connections.ts";
import { enabledBackends, type Surroundings } from "./controller.ts";
import type { HealthChecks } from "./health.ts";
import type { QueueWatch, Sources } from "./sources.ts";

const READ_EVENTS_MS = 2_000;

/** The pages of the leader. */
export function showActing(
  { engine, scheduler, statistics, operating, traces }: Acting,
  around: Surroundings & {
    readonly connections: Connections;
    readonly counts: QueueWatch;
    readonly checks: HealthChecks;
  },
): Views {
  const { config, clock, sources } = around;
  return createBoard({
    ledger: engine.ledger,
    pools: engine.pools,
    statistics,
    clock,
    from: {
      version: around.version,
      profile: config.profile,
      enabled: enabledBackends(config),
      effectiveConfig: config.effective,
      leader: () => sources.leader(engine.epoch()),
      sources: sources.all,
      flags: engine.flags,
      label: (name) => labelOf(config, name, engine.flags(name).label?.value),
      counts: around.counts.of,
      strangers: engine.strangers,
      ready: engine.ready,
      nextFetchAt: scheduler.nextFetchAt,
      readEvents: (query) => readEvents(around, query),
      audit: (query) => readAudit(operating.audit, clock, query),
      operation: (id) => Promise.resolve(findOperation(operating.operations, id)),
      operations: (query) => Promise.try(() => operationsPage(operating.operations.list(), query)),
      onOperation: operating.operations.subscribe,
      onFlags: engine.watchFlags,
      configuredVmLabel: config.vmLabel,
      health: around.checks.health,
      recheck: around.checks.recheck,
      traceId: (id) => traces?.idOf(id),
      declared: (name) => {
        const declared = scheduler.declared();
        const label = labelOf(config, name, engine.flags(name).label?.value);
        return declared === null ? null : declared.labels.includes(label);
      },
      declaredSince: (name) => {
        const label = labelOf(config, name, engine.flags(name).label?.value);
        return scheduler.declared()?.labelSince.get(label) ?? null;
      },
    },
  });
}

/** What operators did. A page must not wait for a server that is away. */
async function readAudit(audit: Pick<AuditLog, "read">, clock: Clock, query: AuditQuery) {
  using patience = clock.timeout(READ_EVENTS_MS);
  return auditPage(await audit.read(patience), query);
}

function findOperation(operations: Operations, id: string) {
  const found = operations.get(id);
  return found === undefined ? undefined : operationView(found);
}

/** Entries of the events stream. A page must not wait for a server that is away. */
export async function readEvents(
  { connections, clock }: {
    readonly connections: Pick<Connections, "events">;
    readonly clock: Clock;
  },
  { assignment, beforeSeq, limit }: Parameters<ReadEvents>[0],
): Promise<StoredEntry[]> {
  using patience = clock.timeout(READ_EVENTS_MS);
  return await connections.events.read({
    ...(assignment === undefined ? {} : { assignment }),
    ...(beforeSeq === undefined ? {} : { fromSeq: beforeSeq - 1 }),
    limit,
    newestFirst: assignment === undefined,
  }, patience);
}

/** The pages of a process that does not lead: the servers, and what the events stream tells. */
export function showStandby(
  around: Surroundings & {
    readonly connections: Pick<Connections, "events" | "nats">;
    readonly checks: HealthChecks;
  },
): Views {
  const { clock, connections } = around;
  const read: ReadEvents = (query) => readEvents(around, query);
  const operating = readOperating(connections.nats, clock);
  const base = emptyBoard({ ...around, readEvents: read, operating });
  return createStandbyViews(base, {
    readEvents: read,
    statistics: createPhaseStatistics(),
    clock: around.clock,
  });
}

/** What operators did, read from the servers: the leader alone has it in memory. */
function readOperating(
  nats: NatsConnection,
  clock: Clock,
): Pick<BoardSources, "audit" | "operation" | "operations"> {
  const audit = createAuditReader(nats, { clock });
  const store = createOperationStore(nats, { clock });
  return {
    audit: (query) => readAudit(audit, clock, query),
    async operation(id) {
      using patience = clock.timeout(READ_EVENTS_MS);
      const stored = await store.get(id, patience);
      return stored === undefined ? undefined : operationView(stored.operation);
    },
    async operations(query) {
      using patience = clock.timeout(READ_EVENTS_MS);
      const stored = await store.list(patience);
      return operationsPage(newestFirst(stored.map(({ operation }) => operation)), query);
    },
  };
}

/** What there is to show before anything is known: the servers and, once it can be read, history. */
export function emptyBoard(deps: {
  readonly config: Config;
  readonly version: string;
  readonly sources: Sources;
  readonly clock: Clock;
  readonly readEvents?: ReadEvents;
  readonly checks?: HealthChecks;
  readonly operating?: Pick<BoardSources, "audit" | "operation" | "operations">;
}): Views {
  const { config, clock, sources } = deps;
  const makePool = (name: BackendName) =>
    createPool({ capacity: () => config.backends[name].capacity, open: () => false });
  const pools = { pod: makePool("pod"), vm: makePool("vm") };
  const ledger = createLedger({
    clock,
    pools,
    delays: DEFAULT_DELAYS,
    journal: { write() {} },
    run() {},
  });
  return createBoard({
    ledger,
    pools,
    statistics: createPhaseStatistics(),
    clock,
    from: {
      ...deps.operating,
      version: deps.version,
      profile: config.profile,
      enabled: enabledBackends(config),
      effectiveConfig: config.effective,
      leader: () => sources.leader(0),
      sources: sources.all,
      flags: () => NO_FLAGS,
      label: (name) => labelOf(config, name),
      counts: () => null,
      strangers: () => [],
      ready: () => false,
      nextFetchAt: () => null,
      readEvents: deps.readEvents ?? (() => Promise.resolve([])),
      ...deps.checks,
    },
  });
}

function labelOf(config: Config, name: BackendName, given?: string): string {
  return name === "vm" ? given ?? config.vmLabel : name;
}
