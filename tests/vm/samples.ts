import assert from "node:assert/strict";
import { parseYaml, stringifyYaml } from "../../controller/model/workflow.ts";
import { at, listAt } from "../support/kube_manifests.ts";
import { startVmController } from "./controller.ts";
import { startPlatform } from "./platform.ts";
import { playJob } from "./player.ts";
import type { Stage } from "./stage.ts";
import { lintWorkflow } from "./workflow_lint.ts";

const FOLDER = new URL("../../deploy/samples/", import.meta.url).pathname;
const LABELS = ["self-hosted", "vm-dev"];

/**
 * The samples as far as they go without a kernel and Docker of their own, on a controller of the canary
 * label: jobs of the production label stay at Gitea meanwhile.
 */
export async function checkSamples(stage: Stage): Promise<void> {
  const { report, gitea, repository } = stage;
  await report.check("the samples pass actionlint", async () => {
    const names = (await Array.fromAsync(Deno.readDir(FOLDER))).map(({ name }) => name);
    assert.ok(names.length >= 3, "samples are there");
    for (const name of names) {
      const text = await Deno.readTextFile(FOLDER + name);
      assert.deepEqual(await lintWorkflow(text, name), [], name);
      const broken = text.replace("workflow_dispatch", "workflow_dispatched");
      assert.equal((await lintWorkflow(broken, name)).length, 1, `${name} with a fault`);
    }
    return names.join(", ");
  });
  const pods = parseYaml(await Deno.readTextFile(`${FOLDER}pod-runtime-smoke.yaml`));
  const vms = parseYaml(await Deno.readTextFile(`${FOLDER}vm-runtime-smoke.yaml`));
  await gitea.commit(repository, [
    workflow("sample-actions", listAt(pods, "jobs", "runtime", "steps")),
    workflow("sample-socket", [at(vms, "jobs", "runtime", "steps", 0)]),
  ]);
  await using platform = startPlatform(stage);
  await using controller = await startVmController(stage, { VM_RUNNER_LABEL: "vm-dev" });
  const world = { stage, platform, controller };
  const waiting = await gitea.dispatch(repository, "quick.yaml");
  await report.check("sample of Pods: identity socket, Node and Python action", async () => {
    const { log } = await playJob(world, "sample-actions.yaml");
    // The scripts stand in the log, too.
    const said = /node-action-ok v\d\S*/.exec(log)?.[0];
    const python = /python-action-ok \d\S*/.exec(log)?.[0];
    assert.ok(said !== undefined && python !== undefined, log);
    return `${said}, ${python}`;
  });
  await report.check("sample of microVMs: identity socket", async () => {
    const { log } = await playJob(world, "sample-socket.yaml");
    const said = /SPIFFE_ENDPOINT_SOCKET: unix:\S+/.exec(log)?.[0];
    assert.ok(said !== undefined, log);
    return said;
  });
  await report.check("with vm-dev a job on vm stays at Gitea", async () => {
    const { jobs: [job] } = await gitea.run(repository, waiting);
    assert.equal(job?.status, "waiting");
    await gitea.cancel(repository, waiting);
    return "two younger ones on vm-dev were done meanwhile";
  });
}

/** A workflow of one job with these steps. */
function workflow(name: string, steps: readonly unknown[]) {
  assert.ok(steps.length > 0 && !steps.includes(undefined), `${name} has steps`);
  const content = stringifyYaml({
    on: { workflow_dispatch: {} },
    jobs: { sample: { "runs-on": LABELS, steps } },
  });
  return { path: `.gitea/workflows/${name}.yaml`, content };
}
