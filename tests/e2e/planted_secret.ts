import { findSecretInFiles, holdsSecret } from "../support/find_secret.ts";
import { eventually } from "../support/eventually.ts";
import { encodePlainEnvelope } from "../support/plain_envelope.ts";
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

/** Jobs of `workflows/planted.yaml`. */
const copies = 6;

/**
 * Lets jobs hold a secret, as many as there are slots, with more of them in the stream. Looks for it,
 * and for the tokens of the jobs, everywhere but in the jobs: meanwhile, and after their end. Resolves
 * to what was looked for.
 */
export async function checkPlantedSecret(
  grounds: Grounds,
  product: Product,
  options: {
    readonly report: Report;
    readonly counter: OutsideCounter;
    readonly capacity: number;
  },
): Promise<Needles> {
  const { report, counter, capacity } = options;
  const { owner, closed } = grounds;
  const planted = crypto.randomUUID() + crypto.randomUUID();
  let needles: Needles = { "the planted secret": planted };
  await report.check("a planted secret is found nowhere while its job runs", async () => {
    await owner.setSecret(closed, "PLANTED", planted);
    const run = await owner.dispatch(closed, "planted.yaml", { counter: counter.url });
    try {
      await eventually(() => counter.holding === capacity, {
        what: `${capacity} jobs to hold on`,
        timeoutMs: 60_000,
      });
      const waiting = (await allAssignments(product))
        .filter((one) => one.runId === String(run) && one.state === "stored").length;
      if (waiting !== copies - capacity) throw new Error(`${waiting} wait in the stream`);
      for (const [copy, token] of counter.told) {
        if (token.length !== 40) throw new Error(`Job ${copy} told ${token.length} characters`);
        needles = { ...needles, [`the token of job ${copy}`]: token };
      }
      const figures = await search(grounds, product, needles);
      const holders = await environmentsWith(planted);
      if (holders.inside < capacity) {
        throw new Error("The search of environments does not even find the steps that have it");
      }
      if (holders.outside.length > 0) {
        throw new Error(`In the environment of ${holders.outside.join(", ")}`);
      }
      return `${capacity} hold it, ${waiting} wait in the stream; looked through ${figures}, ` +
        `${holders.looked} environments, of which ${holders.inside} below the runners have it`;
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
  const folders = [peers.nats.storeFolder, product.stateFolder, ...product.logFiles.map(parentOf)];
  for (const [name, secret] of Object.entries(needles)) {
    for (const folder of folders) {
      found.push(...(await findSecretInFiles(folder, secret)).map((path) => `${name} in ${path}`));
    }
    for (const [path, text] of texts) {
      if (holdsSecret(new TextEncoder().encode(text), secret)) found.push(`${name} in ${path}`);
    }
  }
  if (found.length > 0) throw new Error(found.join("\n"));
  return `${texts.size} answers, the files of NATS and of the product, the logs`;
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
  texts.set("/api/v1/events", await beginningOf(`${product.url}/api/v1/events`));
  return texts;
}

/** What an event stream sends in its first second. */
async function beginningOf(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(1000) });
  let text = "";
  try {
    for await (const part of (response.body ?? new ReadableStream()).pipeThrough(decoder())) {
      text += part;
    }
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "TimeoutError")) throw error;
  }
  if (!text.includes("event: snapshot")) throw new Error(`Read "${url}": no snapshot came`);
  return text;
}

function decoder(): TransformStream<Uint8Array, string> {
  const text = new TextDecoder();
  return new TransformStream({
    transform: (part, to) => to.enqueue(text.decode(part, { stream: true })),
  });
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
