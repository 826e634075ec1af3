/** A facade in the test, a Workload API, and tasks: what a gate needs around it. */
import { createServer, type Server } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Buffer } from "node:buffer";
import type { TLSSocket } from "node:tls";
import { type Authority, createAuthority } from "../../clients/x509/trust_domain.ts";
import {
  DeclareRequestSchema,
  DeclareResponseSchema,
  FetchTaskResponseSchema,
  Result,
  RunnerSchema,
  type Task,
  TaskSchema,
  type TaskState,
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import type { GatePhases } from "../../controller/model/gate_phase.ts";
import { create, fromBinary, toBinary } from "../../proto/runtime.ts";
import { issueSvid } from "../support/svids.ts";

/** Trust domain of all executor tests. */
export const TRUST_DOMAIN = "example.org";
/** The facade's identity. */
export const FACADE_ID = `spiffe://${TRUST_DOMAIN}/controller`;
/** The executor's identity. */
export const EXECUTOR_ID = `spiffe://${TRUST_DOMAIN}/ci/owner/repo/build`;
/** The executor's capability. */
export const CAPABILITY = "capability-of-the-test-0123456789";

/** A CA for one test. */
export function testAuthority(): Promise<Authority> {
  return createAuthority(TRUST_DOMAIN, Date.now());
}

/**
 * What the facade does with calls: `lost` = done, but the answer never arrives; `rows_lost` = so with
 * those that bring rows.
 */
export type Weather = "fair" | "unavailable" | "lost" | "rows_lost" | "refusing";

/** The last call of a gate. */
export interface GateExit {
  readonly delivered: boolean;
  readonly code: number;
  readonly detail: string;
  /** When it reached what, ms since its start. */
  readonly phases: GatePhases;
}

/** A facade that keeps what it is told, with Gitea's rules for rows. */
export interface RecordingFacade extends AsyncDisposable {
  readonly url: string;
  weather: Weather;
  /** Answer of UpdateTask while the job runs. */
  answer: Result;
  /** Handed out while set. */
  task: Task | undefined;
  /** Last part of the path of every call that reached it, in order. */
  readonly calls: string[];
  /** Headers of the last call. */
  readonly lastHeaders: IncomingMessage["headers"];
  /** SPIFFE URI and serial of each caller seen. */
  readonly peers: Set<string>;
  readonly rows: string[];
  readonly states: TaskState[];
  readonly outputs: Record<string, string>;
  readonly sealed: boolean;
  readonly final: TaskState | undefined;
  readonly heartbeats: boolean[];
  /** What each heartbeat said of the log offset; every FetchTask is answered with 5. */
  readonly offsets: unknown[];
  readonly terminating: string[];
  readonly exits: GateExit[];
  /** When a call of that name arrived first, ms of `performance.now()`. */
  at(name: string): number | undefined;
}

/** Opens one on a random loopback port. */
export async function openRecordingFacade(
  authority: Authority,
  spiffeId: string = FACADE_ID,
): Promise<RecordingFacade> {
  const svid = await issueSvid(authority, [spiffeId]);
  const server: Server = createServer({
    cert: svid.certificatePem,
    key: svid.privateKeyPem,
    ca: svid.bundlePem,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: "TLSv1.3",
  });
  let sealed = false;
  let final: TaskState | undefined;
  let lastHeaders: IncomingMessage["headers"] = {};
  const first = new Map<string, number>();
  const kept = {
    calls: [] as string[],
    peers: new Set<string>(),
    rows: [] as string[],
    states: [] as TaskState[],
    outputs: {} as Record<string, string>,
    heartbeats: [] as boolean[],
    offsets: [] as unknown[],
    terminating: [] as string[],
    exits: [] as GateExit[],
  };

  const rpc = (name: string, body: Uint8Array): Uint8Array | undefined => {
    switch (name) {
      case "Declare": {
        const { version, labels } = fromBinary(DeclareRequestSchema, body);
        const runner = create(RunnerSchema, { id: 1n, uuid: "u", name: "n", version, labels });
        return toBinary(DeclareResponseSchema, create(DeclareResponseSchema, { runner }));
      }
      case "FetchTask": {
        const answer = create(
          FetchTaskResponseSchema,
          facade.task === undefined ? {} : {
            task: facade.task,
            tasksVersion: 1n,
          },
        );
        return toBinary(FetchTaskResponseSchema, answer);
      }
      case "UpdateLog": {
        const request = fromBinary(UpdateLogRequestSchema, body);
        const index = Number(request.index);
        if (sealed && request.rows.length > 0) return undefined;
        if (index <= kept.rows.length) {
          const fresh = request.rows.slice(kept.rows.length - index);
          kept.rows.push(...fresh.map((row) => row.content));
          if (request.noMore) sealed = true;
        }
        const ackIndex = BigInt(kept.rows.length);
        return toBinary(UpdateLogResponseSchema, create(UpdateLogResponseSchema, { ackIndex }));
      }
      case "UpdateTask": {
        const request = fromBinary(UpdateTaskRequestSchema, body);
        if (request.state === undefined) return undefined;
        kept.states.push(request.state);
        Object.assign(kept.outputs, request.outputs);
        if (request.state.result !== Result.UNSPECIFIED) final ??= request.state;
        const answer = create(UpdateTaskResponseSchema, {
          state: { id: request.state.id, result: final?.result ?? facade.answer },
          sentOutputs: Object.keys(kept.outputs),
        });
        return toBinary(UpdateTaskResponseSchema, answer);
      }
      default:
        return undefined;
    }
  };
  const json = (name: string, body: Uint8Array) => {
    const value = JSON.parse(new TextDecoder().decode(body));
    if (name === "heartbeat") {
      kept.heartbeats.push(value.holdsTask);
      kept.offsets.push(value.logOffset);
    }
    if (name === "terminating") kept.terminating.push(value.why);
    if (name === "exit") kept.exits.push(value);
  };
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const parts: Uint8Array[] = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const path = request.url ?? "";
    const name = path.split("/").at(-1) ?? "";
    kept.calls.push(name);
    if (!first.has(name)) first.set(name, performance.now());
    lastHeaders = request.headers;
    const peer = (request.socket as TLSSocket).getPeerCertificate();
    kept.peers.add(`${peer.subjectaltname} ${peer.serialNumber}`);
    const fail = (status: number, code: string) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ code, message: "the test says so" }));
    };
    if (facade.weather === "unavailable") return fail(503, "unavailable");
    if (facade.weather === "refusing") return fail(403, "permission_denied");
    if (request.headers["x-runner-token"] !== CAPABILITY) return fail(403, "permission_denied");
    if (path.startsWith("/executor/v1/")) {
      json(name, body);
      return void response.writeHead(204).end();
    }
    const answer = rpc(name, new Uint8Array(body));
    const { weather } = facade;
    if (weather === "lost" || (weather === "rows_lost" && name === "UpdateLog")) {
      return void request.socket.destroy();
    }
    if (answer === undefined) return fail(409, "already_exists");
    response.writeHead(200, {
      "content-type": "application/proto",
      "x-gitea-actions-capabilities": "job-summary",
      ...name === "FetchTask" ? { "x-log-offset": "5" } : {},
    });
    response.end(Buffer.from(answer));
  };
  server.on("request", (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("Listen: no port");
  const facade: RecordingFacade = {
    url: `https://127.0.0.1:${address.port}`,
    weather: "fair",
    answer: Result.UNSPECIFIED,
    task: undefined,
    ...kept,
    get lastHeaders() {
      return lastHeaders;
    },
    get sealed() {
      return sealed;
    },
    get final() {
      return final;
    },
    at: (name) => first.get(name),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return facade;
}

/** A task with this workflow, as Gitea hands it out. */
export function taskOf(
  id: bigint,
  workflow: string,
  options: {
    readonly giteaUrl: string;
    readonly job?: string;
    readonly secrets?: Readonly<Record<string, string>>;
    readonly vars?: Readonly<Record<string, string>>;
  },
): Task {
  return create(TaskSchema, {
    id,
    workflowPayload: new TextEncoder().encode(workflow),
    secrets: { GITHUB_TOKEN: "job-token", GITEA_TOKEN: "job-token", ...options.secrets },
    vars: { ...options.vars },
    context: {
      actor: "someone",
      event: {},
      event_name: "push",
      gitea_default_actions_url: options.giteaUrl,
      gitea_runtime_token: "runtime-token",
      job: options.job ?? "build",
      ref: "refs/heads/main",
      ref_name: "main",
      ref_type: "branch",
      repository: "owner/repo",
      repository_owner: "owner",
      run_id: "7",
      run_number: "3",
      run_attempt: "1",
      server_url: `${options.giteaUrl}/`,
      api_url: `${options.giteaUrl}/api/v1`,
      sha: "0123456789abcdef0123456789abcdef01234567",
      token: "job-token",
      workflow: "build.yaml",
    },
  });
}
