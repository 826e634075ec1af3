import { HAPPY } from "../support/engine_events.ts";
import type { RecordingProxy } from "../support/recording_proxy.ts";
import { assignmentDetail, awaitCleaned } from "./assignments.ts";
import type { Product } from "./by_product.ts";
import type { Report } from "./report.ts";
import type { PlayedScenario } from "./scenarios.ts";

/** What may stand between the events of a job that goes well: waiting for a slot. */
const waits = new Set(["capacity_wait"]);

const runnerService = /^\/api\/actions\/(runner\.v1\.RunnerService|ping\.v1\.PingService)\/\w+$/;

/** What must be true at the product once every run of the table has ended. */
export async function checkAfterScenarios(
  product: Product,
  played: readonly PlayedScenario[],
  options: {
    readonly report: Report;
    /** Before Gitea for the controller alone. */
    readonly controllerProxy: RecordingProxy;
    /** Before Gitea for jobs: its ROOT_URL. */
    readonly jobProxy: RecordingProxy;
  },
): Promise<void> {
  const { report, controllerProxy, jobProxy } = options;
  await report.check("every assignment ends as cleaned, with the events of its way", async () => {
    const all = await awaitCleaned(product, { timeoutMs: 90_000 });
    const wrong: string[] = [];
    let complete = 0;
    for (const one of all) {
      const events = (await assignmentDetail(product, one.id)).events.map((event) => event.event);
      if (events[0] !== "received" || events.at(-1) !== "cleaned") {
        wrong.push(`${one.id} of "${one.job}": ${events.join(" ")}`);
      } else if (one.result === "success" || one.result === "failure" && events.includes("acked")) {
        const rest = events.filter((event) => !waits.has(event) && event !== "received");
        if (rest.join(" ") === HAPPY.slice(1).join(" ")) complete++;
        else wrong.push(`${one.id} of "${one.job}": ${events.join(" ")}`);
      }
    }
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
    return `${all.length} assignments, ${complete} with exactly the orderly events`;
  });
  await report.check("each job has the identity of its repository, forks another", async () => {
    const { items } = { items: await awaitCleaned(product, { timeoutMs: 1000 }) };
    const wrong: string[] = [];
    let forks = 0;
    for (const { scenario, started } of played) {
      for (const one of items.filter((item) => item.runId === String(started.run))) {
        const expected = scenario.identity.replaceAll("{job}", one.job);
        const fork = expected.includes("/ci-fork/");
        if (fork) forks++;
        if (one.spiffeId !== expected || one.fork !== fork) {
          wrong.push(`${one.id}: ${one.spiffeId} (fork: ${one.fork}), not ${expected}`);
        }
      }
    }
    if (forks === 0) wrong.push("no job came from a fork");
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
    return `${items.length} identities, ${forks} of a fork`;
  });
  await report.check("only RunnerService goes through the gate", () => {
    // Its version is asked by the controller itself, for the page of self tests.
    const foreign = controllerProxy.requests.filter(({ method, path }) =>
      !runnerService.test(path) && !(method === "GET" && path === "/api/v1/version")
    );
    const own = jobProxy.count((path) => runnerService.test(path));
    const [first] = foreign;
    if (first !== undefined) {
      throw new Error(`${foreign.length} others, the first ${first.method} ${first.path}`);
    }
    if (own > 0) throw new Error(`${own} calls of RunnerService went past the gate`);
    const kinds = {
      git: jobProxy.count((path) => /\/git-upload-pack$|\/info\/refs$/.test(path)),
      rest: jobProxy.count((path) => path.startsWith("/api/v1/")),
      artifacts: jobProxy.count((path) => /\/twirp\/|actions_pipeline/.test(path)),
    };
    if (Object.values(kinds).includes(0)) {
      throw new Error(`Jobs did not reach Gitea by themselves: ${JSON.stringify(kinds)}`);
    }
    return Promise.resolve(
      `${controllerProxy.requests.length} calls of RunnerService; past the gate ` +
        `${kinds.git} of git, ${kinds.rest} of REST, ${kinds.artifacts} of artifacts`,
    );
  });
}
