import type { StoredJob } from "../../embedded/forge/store.ts";
import { systemClock } from "../../lib/clock.ts";
import { createFakeForge } from "../fakes/forge/fake_forge.ts";

/** The forge over HTTP, with one registration: outside of every controller, unlike the embedded one. */
export interface ServedForge extends AsyncDisposable {
  /** What a controller is told of it. */
  readonly env: Readonly<Record<string, string>>;
  /** Calls of `method` so far, e.g. `FetchTask`, by user agent and all. */
  calls(method: string): number;
  /** Queues a job of one step, for the Pod pool unless another label is given; its title is its job key. */
  dispatch(job: string, script: string, label?: string): void;
  /** Labels of the last Declare; empty before the first. */
  declared(): readonly string[];
  job(job: string): Readonly<StoredJob> | undefined;
  rows(job: string): readonly string[];
}

/** Starts a {@link ServedForge}. */
export function serveForge(): ServedForge {
  const fake = createFakeForge({ clock: systemClock });
  const runner = fake.addRunner([]);
  const counts = new Map<string, number>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const method = new URL(request.url).pathname.split("/").at(-1) ?? "";
    counts.set(method, (counts.get(method) ?? 0) + 1);
    return fake.handler(request);
  });
  const find = (name: string) => fake.forge.jobs().find(({ job }) => job === name);
  return {
    env: {
      GITEA_URL: `http://127.0.0.1:${server.addr.port}`,
      GITEA_RUNNER_UUID: runner.uuid,
      GITEA_RUNNER_TOKEN: runner.token.reveal(),
    },
    calls: (method) => counts.get(method) ?? 0,
    declared: () => fake.declares.at(-1) ?? [],
    dispatch(job, script, label = "pod") {
      const common = { repository: "sample/outside", workflow: "outside.yaml" };
      const runsOn = ["self-hosted", label];
      const workflow = {
        on: "push",
        jobs: { [job]: { "runs-on": runsOn, steps: [{ run: script }] } },
      };
      fake.forge.dispatch([{
        ...common,
        jobs: [{
          ...common,
          eventName: "push",
          job,
          title: job,
          runsOn,
          payload: JSON.stringify(workflow),
        }],
      }]);
    },
    job: find,
    rows(job) {
      const id = find(job)?.jobId;
      return id === undefined ? [] : fake.forge.rows(id).map(({ content }) => content);
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
