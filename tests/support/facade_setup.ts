import { type Clock, systemClock } from "../../lib/clock.ts";
import { type Fields, type Logger, silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { toPem } from "../../clients/spiffe/der.ts";
import type { Svid, SvidSource } from "../../clients/spiffe/workload_api.ts";
import { createAuthority } from "../../clients/x509/trust_domain.ts";
import { connectClient } from "../../clients/connect/client.ts";
import { RunnerService } from "../../proto/gen/runner/v1/services_pb.ts";
import { PingService } from "../../proto/gen/ping/v1/ping_pb.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import { type AssignmentId, assignmentIdOf, parseTaskId } from "../../controller/model/ids.ts";
import type { ClaimAnswer, ExecutorEvents } from "../../controller/offers.ts";
import { noRecorder } from "../../controller/recorder.ts";
import { createCapabilities } from "../../facade/capability.ts";
import { createFacade, type FacadeDeps, type FacadeOptions } from "../../facade/server.ts";
import { add, createFakeGitea } from "../fakes/gitea_port.ts";
import { createMtlsFetch, createMtlsFetch2, type MtlsFetch } from "./mtls_fetch.ts";
import { issueSvid } from "./svids.ts";
import { sampleTask } from "./tasks.ts";

/** The trust domain of these tests. */
export const TRUST_DOMAIN = "test.example";
/** Identity of the sample job. */
export const JOB_ID = `spiffe://${TRUST_DOMAIN}/ci/acme/app/build`;
/** A gate instance id. */
export const GATE = "0123456789abcdef0123456789abcdef";

/** An SVID source that changes when told to. */
function createSvids(first: Svid): SvidSource & { rotate(next: Svid): void } {
  let current = first;
  const listeners = new Set<(svid: Svid) => void>();
  return {
    current: () => current,
    ready: () => Promise.resolve(current),
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    status: () => ({ state: "live", since: 0, lastError: null }),
    rotate(next) {
      current = next;
      for (const listener of listeners) listener(next);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** What the controller was told, in order, and how it answers claims. */
export interface RecordedEvents extends ExecutorEvents {
  readonly told: string[];
  answer: (id: AssignmentId, gate: string, signal: AbortSignal) => Promise<ClaimAnswer>;
}

/** The controller's half as a recorder; grants every claim with `logOffset` 0 unless told otherwise. */
export function createRecordedEvents(): RecordedEvents {
  const told: string[] = [];
  const events: RecordedEvents = {
    told,
    answer: () => Promise.resolve({ kind: "granted", logOffset: 0 }),
    claim(id, gate, signal) {
      told.push(`claim ${id} ${gate}`);
      return events.answer(id, gate, signal);
    },
    updated: (id) => void told.push(`updated ${id}`),
    stepsForwarded: (id, steps) =>
      void told.push(`steps ${id} ${steps.map((s) => `${s.logIndex}+${s.logLength}`)}`),
    endedAtGitea: (id) => void told.push(`ended at Gitea ${id}`),
    finalAccepted: (id, result) => void told.push(`final ${id} ${result}`),
    shown: (id, gate, shown) => void told.push(`shown ${id} ${gate} ${JSON.stringify(shown)}`),
    heartbeat: (id, beat) => void told.push(`heartbeat ${id} ${beat.holdsTask}`),
    terminating: (id, why) => void told.push(`terminating ${id} ${why}`),
    exited: (id, exit) => void told.push(`exited ${id} ${exit.delivered} ${exit.code}`),
  };
  return events;
}

/** A logger that keeps what it was told. */
export function createRecordedLogger(): Logger & { readonly records: string[] } {
  const records: string[] = [];
  const keep = (level: string) => (message: string, fields: Fields = {}) => {
    records.push(`${level} ${message} ${JSON.stringify(fields)}`);
  };
  const logger: Logger = {
    debug: keep("debug"),
    info: keep("info"),
    warn: keep("warn"),
    error: keep("error"),
    child: () => logger,
  };
  return { ...logger, records };
}

/** The sample assignment of a task. */
export function sampleInfo(taskId = 11n, spiffeId = JOB_ID): AssignmentInfo {
  const id = parseTaskId(taskId);
  if (id === undefined) throw new RangeError(`Make assignment: task id ${taskId}`);
  return {
    id: assignmentIdOf(id),
    taskId: id,
    backend: "pod",
    identity: { spiffeId, fork: false },
    repository: "acme/app",
    job: "build",
    runId: "5",
    giteaUrl: null,
    serverUrl: "http://gitea.example.org",
  };
}

/** A facade with everything around it faked but TLS; dispose it at the end. */
export async function setupFacade(
  over: { readonly deps?: Partial<FacadeDeps>; readonly options?: Partial<FacadeOptions> } = {},
) {
  const authority = await createAuthority(TRUST_DOMAIN, Date.now());
  const svids = createSvids(await issueSvid(authority, [`spiffe://${TRUST_DOMAIN}/controller`]));
  const gitea = createFakeGitea();
  const events = createRecordedEvents();
  const capabilities = createCapabilities([new Secret("k".repeat(32))]);
  const clock: Clock = systemClock;
  const facade = await createFacade({
    svids,
    trustDomain: TRUST_DOMAIN,
    gitea,
    events,
    capabilities,
    recorder: noRecorder,
    logger: silentLogger,
    clock,
    ...over.deps,
  }, {
    hostname: "127.0.0.1",
    port: 0,
    signal: new AbortController().signal,
    ...over.options,
  });
  const clients: MtlsFetch[] = [];
  const url = `https://127.0.0.1:${facade.port}`;

  /** Fetch as the holder of that SVID; null = without a certificate. */
  const fetchAs = (svid: Svid | null, http2 = false): typeof fetch => {
    const options = {
      ca: toPem("CERTIFICATE", authority.bundleDer),
      cert: svid?.certificatePem,
      key: svid?.privateKeyPem,
    };
    const client = http2 ? createMtlsFetch2(options) : createMtlsFetch(options);
    clients.push(client);
    return client.fetch;
  };
  const headersOf = (info: AssignmentInfo, gate = GATE) => ({
    "x-runner-uuid": info.id,
    "x-runner-token": capabilities.issue(info.id),
    "x-gate-instance": gate,
  });
  const runner = (svid: Svid | null, headers: Record<string, string>, http2 = false) => {
    const options = {
      baseUrl: `${url}/api/actions`,
      fetch: fetchAs(svid, http2),
      headers: () => headers,
    };
    return { ...connectClient(RunnerService, options), ...connectClient(PingService, options) };
  };
  return {
    authority,
    svids,
    gitea,
    events,
    capabilities,
    facade,
    url,
    fetchAs,
    headersOf,
    runner,
    /** Closes the connections of the clients made last. */
    closeNewest(count: number) {
      for (const client of clients.splice(-count)) client[Symbol.dispose]();
    },
    /** Offers a task and makes the client of its executor. */
    async executor(taskId = 11n, gate = GATE) {
      const info = sampleInfo(taskId);
      facade.offers.offer(info, sampleTask({ id: taskId }));
      gitea.tasks.set(taskId, add());
      const svid = await issueSvid(authority, [JOB_ID]);
      return { info, svid, client: runner(svid, headersOf(info, gate)) };
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client[Symbol.dispose]();
      await facade[Symbol.asyncDispose]();
    },
  };
}
