import { ForgeError } from "../../../embedded/forge/error.ts";
import { createForge, type Forge } from "../../../embedded/forge/forge.ts";
import type { RunTemplate } from "../../../embedded/forge/job_file.ts";
import { forgeHandler } from "../../../embedded/forge/server.ts";
import type { ForgeStore, StoredRunner } from "../../../embedded/forge/store.ts";
import { taskMessage } from "../../../embedded/forge/wire.ts";
import type { Gitea } from "../../../controller/gitea.ts";
import { untilAborted } from "../../../lib/abortable.ts";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import { Secret } from "../../../lib/secret.ts";
import {
  FetchTaskResponseSchema,
  RegisterRequestSchema,
} from "../../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../../proto/runtime.ts";
import { directGitea } from "./direct_gitea.ts";
import { type Faults, noFaults, take } from "./faults.ts";

/** The sample forge in this process, with faults to switch on. */
export interface FakeForge {
  readonly url: string;
  /** Calls it without a socket. */
  readonly fetch: typeof globalThis.fetch;
  /** The same forge as one request handler, for `Deno.serve`. */
  readonly handler: (request: Request) => Promise<Response>;
  readonly forge: Forge;
  readonly faults: Faults;
  /** Each FetchTask so far: the version sent, and when (milliseconds, the clock's monotonic time). */
  readonly fetches: { readonly version: bigint; readonly at: number }[];
  /** Each Declare so far: its labels. */
  readonly declares: (readonly string[])[];
  /** Registers a runner that has declared these labels. */
  addRunner(labels?: readonly string[]): { readonly uuid: string; readonly token: Secret };
  /** The `Gitea` port straight on the forge, without Connect: for tests with a fake clock. */
  direct(runner: { readonly uuid: string; readonly token: Secret }): Gitea;
  /** Queues `count` one-step jobs in one batch; returns their job ids. */
  queue(count: number, options?: { readonly runsOn?: readonly string[] }): number[];
}

/** Makes a {@link FakeForge}. No socket, timer or file is opened. */
export function createFakeForge(
  options: { readonly clock?: Clock; readonly store?: ForgeStore } = {},
): FakeForge {
  const clock = options.clock ?? systemClock;
  const url = "http://forge.example";
  const faults = noFaults();
  const fetches: FakeForge["fetches"] = [];
  const declares: FakeForge["declares"] = [];
  const real = createForge({ store: options.store ?? NO_STORE, clock, serverUrl: `${url}/` });
  let calls = 0;
  const before = () => {
    calls += 1;
    if (faults.unauthenticated) throw new ForgeError("Unauthenticated", "unregistered runner");
    if (faults.internalEverySecond && calls % 2 === 0) {
      throw new ForgeError("Internal", "pick task: database is locked");
    }
  };
  const faulty: Forge = {
    ...real,
    declare(runner, request) {
      before();
      declares.push(request.labels);
      real.declare(runner, request);
    },
    fetchTask(runner, request) {
      fetches.push({ version: request.tasksVersion, at: clock.monotonic() });
      before();
      if (take(faults, "throttled")) {
        return create(FetchTaskResponseSchema, { tasksVersion: request.tasksVersion });
      }
      const again = take(faults, "handOutTwice") ? newestTask(real, runner) : undefined;
      const answer = again === undefined ? real.fetchTask(runner, request) : again;
      if (faults.versionFrozen) answer.tasksVersion = 1n;
      return answer;
    },
    updateTask(runner, request) {
      before();
      return real.updateTask(runner, request);
    },
    updateLog(runner, request) {
      before();
      if (request.noMore && take(faults, "failLastRow")) {
        throw new ForgeError("Internal", "write log: disk is full");
      }
      return real.updateLog(runner, request);
    },
  };
  const serve = forgeHandler(faulty);
  const handler = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (faults.html) return new Response("<html>welcome</html>", { headers: HTML });
    const body = new Uint8Array(await request.arrayBuffer());
    if (pathname.includes("/Update") && body.byteLength > faults.bodyLimit) {
      return new Response("<html>413</html>", { status: 413, headers: HTML });
    }
    const { method, headers, signal } = request;
    const copy = new Request(request.url, {
      method,
      headers,
      signal,
      ...(body.byteLength > 0 ? { body } : {}),
    });
    const hang = pathname.endsWith("/FetchTask") && take(faults, "handOutAndHang");
    const tasks = taskCount(real);
    const ended = endedCount(real);
    const answer = await serve(copy);
    if (hang && taskCount(real) > tasks) {
      await answer.body?.cancel();
      await untilAborted(signal);
    }
    if (endedCount(real) > ended && take(faults, "loseFinalAnswer")) {
      await answer.body?.cancel();
      throw new TypeError("error sending request: connection reset by peer");
    }
    return answer;
  };
  return {
    url,
    forge: real,
    faults,
    fetches,
    declares,
    handler,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      request.signal.throwIfAborted();
      if (faults.down) {
        throw new TypeError("error sending request: tcp connect error: Connection refused");
      }
      const answer = await Promise.race([handler(request), untilAborted(request.signal)]);
      return answer;
    },
    addRunner(labels = ["self-hosted", "pod", "vm"]) {
      const { uuid, token } = real.register(create(RegisterRequestSchema, {
        name: "fake",
        token: real.registrationToken,
        labels: [...labels],
      }));
      return { uuid, token: new Secret(token) };
    },
    direct: ({ uuid, token }) => directGitea({ forge: faulty, faults, url, uuid, token }),
    queue: (count, job = {}) => real.dispatch([runOf(count, job.runsOn ?? ["self-hosted", "pod"])]),
  };
}

/** Keeps nothing. */
const NO_STORE: ForgeStore = {
  load: () => undefined,
  saveMeta() {},
  saveJob() {},
  appendRows() {},
  deleteJob() {},
};

const HTML = { "content-type": "text/html" };

function newestTask(forge: Forge, runner: StoredRunner) {
  const job = forge.jobs().findLast((job) => job.taskId > 0 && job.runnerId === runner.id);
  if (job === undefined) return undefined;
  const task = taskMessage(job, { serverUrl: "http://forge.example/", signingKey: "k", now: 0 });
  return create(FetchTaskResponseSchema, { task, tasksVersion: 1n });
}

const taskCount = (forge: Forge) => forge.jobs().filter((job) => job.taskId > 0).length;
const endedCount = (forge: Forge) => forge.jobs().filter((job) => job.result !== null).length;

function runOf(count: number, runsOn: readonly string[]): RunTemplate {
  const jobs = Array.from({ length: count }, (_, index) => ({
    repository: "sample/fake",
    workflow: "fake.yaml",
    eventName: "push",
    job: "work",
    title: `work (${index + 1})`,
    runsOn,
    payload: `name: fake\non: push\njobs:\n  work:\n    runs-on: ${
      JSON.stringify(runsOn)
    }\n    steps:\n      - run: echo work\n`,
  }));
  return { repository: "sample/fake", workflow: "fake.yaml", jobs };
}
