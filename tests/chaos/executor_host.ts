import type { Ending, Executor, Metadata } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { withTerminal } from "../../backends/process/meta.ts";
import { EXIT } from "../../executor/exit_codes.ts";
import { type Launch, parseLaunch } from "../../executor/launch.ts";
import { type LightPhase, runLightGate } from "./light_gate.ts";

/** What is asked for by `POST /executors`. */
export interface HostSpec {
  readonly name: ExecutorName;
  readonly metadata: Metadata;
  readonly environment: Readonly<Record<string, string>>;
}

/** One executor that was killed, and how far it had come. */
export interface Kill {
  /** Of its assignment. */
  readonly assignment: string;
  readonly who: "gate" | "runner";
  readonly phase: LightPhase;
}

/** Faults of the host; counters count down. */
export interface HostFaults {
  /** Answers 503 to everything. */
  refusing: boolean;
  /** The next executors are made, and nobody is told. */
  loseCreates: number;
}

/** Light executors that outlive every controller, and the HTTP API by which one makes them. */
export interface ExecutorHost extends AsyncDisposable {
  readonly url: string;
  readonly faults: HostFaults;
  readonly kills: readonly Kill[];
  /** Executors that are there, ended ones included. */
  readonly size: number;
  /** Names of those that run. */
  running(): readonly ExecutorName[];
  kill(name: ExecutorName, who: Kill["who"]): void;
  /** How many executors were handed the task of that assignment, ever. */
  handed(assignment: string): number;
}

interface Hosted {
  executor: Executor;
  readonly launch: Launch;
  phase: LightPhase;
  readonly killed: AbortController;
  readonly runnerKilled: AbortController;
  readonly running: Promise<void>;
}

/** Starts the host on loopback. Disposing kills every executor. */
export function startExecutorHost(): ExecutorHost {
  const hosted = new Map<ExecutorName, Hosted>();
  const kills: Kill[] = [];
  const handed = new Map<string, number>();
  const faults: HostFaults = { refusing: false, loseCreates: 0 };
  let sequence = 0;

  const ended = (one: Hosted, exitCode: number, detail: string) => {
    const ending: Ending = { code: "executor_failed", detail, exitCode, lastLines: [] };
    one.executor = { ...one.executor, phase: "ended", ended: ending };
  };
  const create = (spec: HostSpec): Executor => {
    const parsed = parseLaunch(spec.environment);
    if (parsed.kind === "faults") throw new TypeError(parsed.faults.join("; "));
    const { launch } = parsed;
    const killed = new AbortController();
    const runnerKilled = new AbortController();
    const one: Hosted = {
      executor: {
        name: spec.name,
        uid: `light-${++sequence}`,
        phase: "running",
        metadata: spec.metadata,
        createdAt: Date.now(),
        identityTarget: spec.name,
        terminating: false,
        ended: null,
        terminal: false,
        node: null,
        waiting: null,
      },
      launch,
      phase: "before",
      killed,
      runnerKilled,
      running: Promise.resolve().then(() =>
        runLightGate(launch, {
          killed: killed.signal,
          runnerKilled: runnerKilled.signal,
          onPhase(phase) {
            one.phase = phase;
            if (phase !== "holding") return;
            handed.set(launch.assignment, (handed.get(launch.assignment) ?? 0) + 1);
          },
        })
      ).then(
        ({ code, detail }) => ended(one, code, `exit code ${code}: ${detail}`),
        (error) =>
          killed.signal.aborted
            ? ended(one, 137, "killed by SIGKILL")
            : ended(one, EXIT.internal, String(error)),
      ),
    };
    hosted.set(spec.name, one);
    return one.executor;
  };
  const find = (name: string, uid: string | null): Hosted | undefined => {
    const one = hosted.get(name as ExecutorName);
    return uid === null || one?.executor.uid === uid ? one : undefined;
  };

  const handle = async (request: Request): Promise<Response> => {
    if (faults.refusing) return new Response("the host is out of order", { status: 503 });
    const { pathname, searchParams } = new URL(request.url);
    const name = pathname.split("/")[2] ?? "";
    const uid = searchParams.get("uid");
    if (request.method === "POST" && pathname === "/executors") {
      const spec = await request.json() as HostSpec;
      if (hosted.has(spec.name)) return new Response("the name is taken", { status: 409 });
      const executor = create(spec);
      if (faults.loseCreates > 0) {
        faults.loseCreates--;
        return new Response("the answer is lost", { status: 504 });
      }
      return Response.json(executor, { status: 201 });
    }
    if (request.method === "GET" && pathname === "/executors") {
      return Response.json([...hosted.values()].map(({ executor }) => executor));
    }
    const one = find(name, uid);
    if (one === undefined) return new Response("no such executor", { status: 404 });
    switch (request.method) {
      case "GET":
        return Response.json(one.executor);
      case "PATCH": {
        const metadata = withTerminal(one.executor.metadata);
        one.executor = { ...one.executor, terminal: true, metadata };
        return new Response(null, { status: 204 });
      }
      case "DELETE":
        one.killed.abort(new DOMException("Deleted", "AbortError"));
        await one.running;
        hosted.delete(one.executor.name);
        return new Response(null, { status: 204 });
      default:
        return new Response("no such call", { status: 405 });
    }
  };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, handle);
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    faults,
    kills,
    get size() {
      return hosted.size;
    },
    running: () =>
      [...hosted.values()].filter(({ executor }) => executor.ended === null)
        .map(({ executor }) => executor.name),
    kill(name, who) {
      const one = hosted.get(name);
      if (one === undefined || one.executor.ended !== null) return;
      kills.push({ assignment: one.launch.assignment, who, phase: one.phase });
      const why = new DOMException("Killed", "AbortError");
      (who === "gate" ? one.killed : one.runnerKilled).abort(why);
    },
    handed: (assignment) => handed.get(assignment) ?? 0,
    async [Symbol.asyncDispose]() {
      for (const { killed } of hosted.values()) {
        killed.abort(new DOMException("The host ends", "AbortError"));
      }
      await Promise.all([...hosted.values()].map(({ running }) => running));
      await server.shutdown();
    },
  };
}
