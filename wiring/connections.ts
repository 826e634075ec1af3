import { createGitea, type GiteaClient } from "../clients/gitea/runner_service.ts";
import { connectNats, type NatsConnection } from "../clients/nats/connection.ts";
import { createControlStore } from "../clients/nats/control_store.ts";
import { createEventLog, type EventLog } from "../clients/nats/event_log.ts";
import { createQueue } from "../clients/nats/queue.ts";
import { lostRecordsAt } from "../clients/nats/lost_records.ts";
import { createSignOutStore } from "../clients/nats/sign_out_store.ts";
import { ensureStreams } from "../clients/nats/streams.ts";
import { type SvidSource, watchSvids } from "../clients/spiffe/workload_api.ts";
import { createGiteaWatch, type GiteaWatch } from "../controller/gitea_status.ts";
import type { AssignmentQueue } from "../controller/queue.ts";
import type { ControlStore } from "../controller/records.ts";
import { checkRegistration } from "../controller/scheduler.ts";
import { allOrNone } from "../lib/all_or_none.ts";
import type { Parts } from "./parts.ts";
import type { Surroundings } from "./controller.ts";
import { RECORDS_LOST } from "./sources.ts";

/** The servers around us. Nothing acts on them yet: a standby has all of it, too. */
export interface Connections {
  readonly gitea: GiteaClient;
  readonly giteaWatch: GiteaWatch;
  readonly nats: NatsConnection;
  readonly queue: AssignmentQueue;
  readonly control: ControlStore;
  readonly events: EventLog;
  readonly svids: SvidSource;
}

/**
 * Connects to Gitea, NATS and the Workload API, and pushes them on `stack`. Waits for servers that may
 * come, and for our own SVID: who has none could not lead. Rejects at once with a named error for what
 * cannot become right (registration, credentials, streams).
 */
export async function connect(
  parts: Parts,
  around: Surroundings & { readonly stack: AsyncDisposableStack },
  signal: AbortSignal,
): Promise<Connections> {
  const { config, logger, clock, random, sources, signOuts, stack } = around;
  const gitea = stack.use(createGitea(parts.gitea));
  const nats = stack.use(connectNats(parts.nats, { logger, clock }));
  sources.nats = () => nats.status();
  // Before Gitea is waited for: whoever has signed out is out, a standby's pages among them.
  if (signOuts !== null) stack.use(signOuts.share(createSignOutStore(nats, { clock })));
  const giteaWatch = createGiteaWatch(clock, logger);
  sources.gitea = () => giteaWatch.status();
  const names = { stream: config.nats.stream, subjectBase: config.nats.subjectBase };
  // When one cannot become right, the other is not waited for.
  await allOrNone([
    (stop) => checkRegistration({ gitea, clock, logger, random, watch: giteaWatch }, stop),
    (stop) => prepareStreams({ nats, names, around }, stop),
  ], signal);
  const deps = { clock, logger };
  const queue = createQueue(nats, { ...names, ...deps });
  const events = stack.use(createEventLog(nats, deps));
  const control = createControlStore(nats, { clock });
  const svids = stack.use(watchSvids(
    { endpoint: parts.endpointSocket, spiffeId: parts.facade.spiffeId, ...deps },
    { signal },
  ));
  sources.spire = () => svids.status();
  await svids.ready(signal);
  return { gitea, giteaWatch, nats, queue, control, events, svids };
}

/** Records are lost: an alarm in the log, and on every page. */
export function noteLostRecords(
  { sources, clock, logger }: Pick<Surroundings, "sources" | "clock" | "logger">,
): void {
  sources.recordsLostAt = clock.now();
  logger.error("records lost", { component: "queue", error: RECORDS_LOST });
}

/** Streams and bucket, made where they are absent; the source says what is waited for. */
async function prepareStreams(
  { nats, names, around }: {
    readonly nats: NatsConnection;
    readonly names: { readonly stream: string; readonly subjectBase: string };
    readonly around: Surroundings;
  },
  signal: AbortSignal,
): Promise<void> {
  const { clock, logger, sources } = around;
  await nats.ready({ signal });
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
  const { made, bucketLost } = await ensureStreams(nats, names, { clock, signal, onWait });
  waiting = null;
  if (made.length > 0) logger.info("streams made", { component: "queue", streams: made });
  if (bucketLost) noteLostRecords(around);
  sources.recordsLostAt = await lostRecordsAt(nats, { bucketLost, clock, signal });
}
