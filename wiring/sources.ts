import type { NatsStatus } from "../clients/nats/connection.ts";
import type { SvidStatus } from "../clients/spiffe/workload_api.ts";
import type { LeadershipStatus } from "../controller/leadership/leadership.ts";
import type { BackendName } from "../controller/model/ids.ts";
import type { AssignmentQueue, QueueCounts } from "../controller/queue.ts";
import { iso, isoOrNull } from "../controller/views/view_of.ts";
import type { LeaderView, SourceName, SourceView } from "../controller/views/views.ts";
import type { Clock } from "../lib/clock.ts";
import type { SourceHealth } from "../lib/source_health.ts";
import type { Upstream } from "../web/standby.ts";

/** How the servers around us do; each says so itself once it is there. */
export interface Sources {
  /** Name of this process among those that may lead. */
  readonly self: string;
  gitea: () => SourceHealth | null;
  nats: () => NatsStatus | null;
  /** When the bucket was found missing beside an existing stream, within a day; null when it was not. */
  recordsLostAt: number | null;
  spire: () => SvidStatus | null;
  leadership: () => LeadershipStatus | null;
  /** How the API server does; null where none is used. */
  kubernetes: (() => SourceHealth) | null;
  /** How OpenSandbox's server does; null where none is used. */
  opensandbox: (() => SourceHealth) | null;
  all(): Readonly<Record<SourceName, SourceView>>;
  /** Where another that leads is reached; null when this one leads, or nobody has said. */
  upstream(): Upstream | null;
  leader(epoch: number): LeaderView;
  /** Numbers of the consumers, asked for every few seconds. */
  countQueue(queue: AssignmentQueue, backends: readonly BackendName[]): QueueWatch;
}

/** Numbers of the queue, as last heard; null before, and when they are too old to be shown. */
export interface QueueWatch {
  of(backend: BackendName): QueueCounts | null;
  run(signal: AbortSignal): Promise<void>;
}

const COUNT_MS = 2_000;
const STALE_MS = 15_000;

/** Makes {@link Sources} of which nothing is known yet. `self` is this process's name. */
export function createSources(
  clock: Clock,
  options: { readonly self: string; readonly mode: LeaderView["mode"] },
): Sources {
  const sources: Sources = {
    self: options.self,
    gitea: () => null,
    nats: () => null,
    recordsLostAt: null,
    spire: () => null,
    leadership: () => null,
    kubernetes: null,
    opensandbox: null,
    all: () => ({
      gitea: viewOr(UNKNOWN, sources.gitea(), clock.now()),
      nats: natsView(sources, clock.now()),
      kubernetes: viewOr(UNUSED, sources.kubernetes?.(), clock.now()),
      spire: spireView(sources.spire(), clock.now()),
      opensandbox: viewOr(UNUSED, sources.opensandbox?.(), clock.now()),
    }),
    upstream() {
      const { holder, address, leading } = sources.leadership() ?? NOBODY;
      if (leading || holder === null || holder === options.self || address == null) return null;
      return { holder, address };
    },
    leader(epoch) {
      const { mode, self } = options;
      const status = sources.leadership();
      const leading = epoch > 0 && status?.leading !== false;
      const holder = status?.holder ?? (leading ? self : null);
      const others = holder === null || holder === self ? [] : [{
        name: holder,
        ready: null,
        leading: true,
        seenAt: isoOrNull(status?.renewedAt ?? null),
      }];
      return {
        mode,
        holder,
        self,
        leading,
        epoch: epoch > 0 ? epoch : null,
        transitions: status?.transitions ?? null,
        acquiredAt: isoOrNull(status?.acquiredAt ?? null),
        renewedAt: isoOrNull(status?.renewedAt ?? null),
        leaseSeconds: status?.leaseSeconds ?? null,
        replicas: [{ name: self, ready: true, leading, seenAt: iso(clock.now()) }, ...others],
      };
    },
    countQueue(queue, backends) {
      const heard = new Map<BackendName, { readonly counts: QueueCounts; readonly at: number }>();
      return {
        of(backend) {
          const last = heard.get(backend);
          return last === undefined || clock.now() - last.at > STALE_MS ? null : last.counts;
        },
        async run(signal) {
          while (!signal.aborted) {
            for (const backend of backends) {
              await queue.counts(backend, { signal }).then(
                (counts) => heard.set(backend, { counts, at: clock.now() }),
                () => {}, // The connection's own status says why.
              );
            }
            await clock.sleep(COUNT_MS, signal).catch(() => {});
          }
        },
      };
    },
  };
  return sources;
}

/** What every page says for a day after that. */
export const RECORDS_LOST =
  "the bucket CI_RUNNER_STATE was missing beside an existing stream: records, cordons and drains are " +
  "lost; executors are taken over as their gates say what they hold, look at those that stay unknown";

const NOBODY = { holder: null, leading: false, address: null };
/** A source that this configuration does not use. */
const UNUSED: SourceView = { state: "unused", since: null, ageMs: null, lastError: null };
const UNKNOWN: SourceView = { state: "unknown", since: null, ageMs: null, lastError: null };

function viewOr(
  absent: SourceView,
  health: SourceHealth | null | undefined,
  now: number,
): SourceView {
  if (health === null || health === undefined) return absent;
  const { state, since, lastOkAt, lastError } = health;
  return {
    state,
    since: iso(since),
    ageMs: lastOkAt === null ? null : now - lastOkAt,
    lastError,
  };
}

function natsView(sources: Sources, now: number): SourceView {
  const status = sources.nats();
  if (status === null) return UNKNOWN;
  const up = status.kind === "connected";
  const { recordsLostAt } = sources;
  const alarm = recordsLostAt === null ? null : `${RECORDS_LOST} (seen ${iso(recordsLostAt)})`;
  return {
    state: !up ? "down" : alarm === null ? "up" : "degraded",
    since: isoOrNull(status.since),
    // The client pings its server: while it is connected, what it says is of now.
    ageMs: up ? 0 : now - status.since,
    lastError: status.detail ?? alarm,
  };
}

function spireView(status: SvidStatus | null, now: number): SourceView {
  if (status === null) return UNKNOWN;
  const state = ({ waiting: "down", live: "up", stale: "degraded", closed: "down" } as const)[
    status.state
  ];
  const ageMs = status.state === "live" ? 0 : now - status.since;
  return { state, since: iso(status.since), ageMs, lastError: status.lastError };
}
