import { findSecretInFiles, holdsSecret } from "../support/find_secret.ts";
import { eventually } from "../support/eventually.ts";
import { encodePlainEnvelope } from "../../controller/model/envelope.ts";
import { assignmentIdOf, parseTaskId } from "../../controller/model/ids.ts";
import { TaskSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";
import { allAssignments } from "./assignments.ts";
import type { Product } from "./by_product.ts";
import type { Grounds } from "./grounds.ts";
import { publishPlain } from "./nats_publish.ts";
import type { OutsideCounter } from "./outside_counter.ts";
import { environmentsWith } from "./process_environments.ts";
import type { Report } from "./report.ts";

/** What must not be found, by the name it goes by in a message. */
type Needles = Readonly<Record<string, string>>;

/**
 * Lets a job hold a secret, and looks for it, and for the job's token, everywhere but in the job:
 * while it runs, and after its end. Resolves to what was looked for.
 */
export async function checkPlantedSecret(
  grounds: Grounds,
  product: Product,
  options: { readonly report: Report; readonly counter: OutsideCounter },
): Promise<Needles> {
  const { report, counter } = options;
  const { owner, closed } = grounds;
  const planted = crypto.randomUUID() + crypto.randomUUID();
  let needles: Needles = { "the planted secret": planted };
  await report.check("a planted secret is found nowhere while its job runs", async () => {
    await owner.setSecret(closed, "PLANTED", planted);
    const run = await owner.dispatch(closed, "planted.yaml", { counter: counter.url });
    try {
      await within(counter.held, { what: "the job to hold on", timeoutMs: 60_000 });
      const token = counter.told.get("token") ?? "";
      if (token.length !== 40) {
        throw new Error(`The job told a token of ${token.length} characters`);
      }
      needles = { ...needles, "the job's token": token };
      const figures = await search(grounds, product, needles);
      const holders = await environmentsWith(planted);
      if (holders.inside === 0) {
        throw new Error("The search of environments does not even find the step that has it");
      }
      if (holders.outside.length > 0) {
        throw new Error(`In the environment of ${holders.outside.join(", ")}`);
      }
      return `${figures}, ${holders.looked} environments; ${holders.inside} below the runner have it`;
    } finally {
      counter.release();
      await eventually(async () => (await owner.run(closed, run)).done, {
        what: "the end of the job with the secret",
        timeoutMs: 60_000,
        everyMs: 500,
      });
    }
  });
  await report.check("a planted secret is found nowhere after its job", async () => {
    return await search(grounds, product, needles);
  });
  return needles;
}

/**
 * The control: stores an envelope of version 1, which is not sealed, and lets the same search find it.
 * Only when no product runs: it would take the envelope for a job.
 */
export async function checkSearchFindsPlainEnvelope(
  grounds: Grounds,
  options: { readonly report: Report; readonly needles: Needles },
): Promise<void> {
  const { report, needles } = options;
  const { peers } = grounds;
  await report.check("the same search finds the secret in an envelope of version 1", async () => {
    const [name = "", secret = ""] = Object.entries(needles)[0] ?? [];
    const before = await findSecretInFiles(peers.nats.storeFolder, secret);
    if (before.length > 0) throw new Error(`${name} was there before: ${before.join(", ")}`);
    await publishPlain(peers.nats.url, {
      subject: "ci.assignment.pod",
      data: plainEnvelope(secret),
    });
    const files = await eventually(async () => {
      const found = await findSecretInFiles(peers.nats.storeFolder, secret);
      return found.length > 0 && found;
    }, { what: "the secret in the files of the store", timeoutMs: 5000, everyMs: 100 });
    return `in ${files.map((file) => file.slice(peers.nats.storeFolder.length + 1)).join(", ")}`;
  });
}

async function search(grounds: Grounds, product: Product, needles: Needles): Promise<string> {
  const { peers } = grounds;
  const found: string[] = [];
  const texts = await everythingServed(product);
  const folders = [peers.nats.storeFolder, ...product.logFiles.map(parentOf)];
  for (const [name, secret] of Object.entries(needles)) {
    for (const folder of folders) {
      found.push(...(await findSecretInFiles(folder, secret)).map((path) => `${name} in ${path}`));
    }
    for (const [path, text] of texts) {
      if (holdsSecret(new TextEncoder().encode(text), secret)) found.push(`${name} in ${path}`);
    }
  }
  if (found.length > 0) throw new Error(found.join("\n"));
  return `${texts.size} answers, the files of NATS and the logs`;
}

/** Every page and answer of the product, by path; each assignment's too. */
async function everythingServed(product: Product): Promise<Map<string, string>> {
  const paths = [
    "/",
    "/metrics",
    "/api/v1/status",
    "/api/v1/backends",
    "/api/v1/executors",
    "/api/v1/leader",
    "/api/v1/audit",
    "/api/v1/history?limit=100",
    "/api/v1/config",
    "/api/v1/openapi.json",
  ];
  const texts = new Map<string, string>();
  for (const one of await allAssignments(product)) {
    paths.push(`/api/v1/assignments/${one.id}`, `/assignments/${one.id}`);
  }
  for (const path of paths) texts.set(path, await product.page(path));
  return texts;
}

function plainEnvelope(secret: string): Uint8Array {
  const taskId = parseTaskId("999999");
  if (taskId === undefined) throw new TypeError("999999 is no task id");
  const task = create(TaskSchema, {
    id: 999_999n,
    secrets: { PLANTED: secret },
    // Long enough to be packed, so that the search has to unpack it.
    workflowPayload: new TextEncoder().encode("jobs: {}\n".repeat(200)),
  });
  return encodePlainEnvelope({
    id: assignmentIdOf(taskId),
    taskId,
    backend: "pod",
    identity: { spiffeId: "spiffe://example.org/ci/peeradmin/e2e/keeper", fork: false },
    repository: "peeradmin/e2e",
    job: "keeper",
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  }, task);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

async function within(
  promise: Promise<void>,
  options: { readonly what: string; readonly timeoutMs: number },
): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`Wait for ${options.what}: not within ${options.timeoutMs} ms`)),
      options.timeoutMs,
    );
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
