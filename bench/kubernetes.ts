import { createKubernetes, type Kubernetes } from "../clients/kubernetes/client.ts";
import { systemClock } from "../lib/clock.ts";
import { type ApiEndpoint, startApiEndpoint } from "../tests/support/api_endpoint.ts";
import { say } from "./real_jobs.ts";
import { type Bound, percentile, type Row, spread } from "./report.ts";

const PODS = 1_000;
const PATH = "/api/v1/namespaces/n/pods";
const signal = new AbortController().signal;

/**
 * The Kubernetes client beside bare fetch on one connection: calls one after the other, and a list of
 * 1,000 Pods with as many changes after it. The server is a stand-in in this process, so that only the
 * client's own work differs. Rounds take turns.
 */
export async function benchKubernetes(
  options: { readonly rounds: number; readonly calls: number },
): Promise<Row[]> {
  await using api = await startApiEndpoint();
  api.answer(servePods());
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  using http = Deno.createHttpClient({
    caCerts: [await Deno.readTextFile(`${api.access.directory}/ca.crt`)],
    http2: false,
  });
  const bare = async (path: string) =>
    await fetch(`https://127.0.0.1:${api.access.port}${path}`, { client: http });
  const samples = {
    call: { bare: [] as number[], ours: [] as number[] },
    watch: { bare: [] as number[], ours: [] as number[] },
  };
  for (let round = -1; round < options.rounds; round++) {
    const call = {
      bare: await timed(options.calls, async () => await (await bare(`${PATH}/x`)).json()),
      ours: await timed(options.calls, () => readPod(kubernetes)),
    };
    const watch = {
      bare: await timed(1, () => bareWatch(bare)),
      ours: await timed(1, () => ourWatch(kubernetes)),
    };
    if (round < 0) continue; // Warms both up.
    for (const side of ["bare", "ours"] as const) {
      samples.call[side].push(call[side] / options.calls);
      samples.watch[side].push(watch[side]);
    }
  }
  say(`Kubernetes: ${api.asked.length} requests, ${connectionsOf(api)} connections`);
  const row = (what: string, { bare, ours }: typeof samples.call, bound: Bound): Row => ({
    what,
    unit: "ms, p50",
    referenceName: "bare fetch and JSON",
    reference: percentile(bare, 0.5),
    ours: percentile(ours, 0.5),
    ratio: percentile(ours.map((ms, round) => ms / (bare[round] ?? NaN)), 0.5),
    bound,
    notes: [`bare: ${spread(bare)}`, `ours: ${spread(ours)}`],
  });
  return [
    row("Kubernetes: one call", samples.call, { kind: "at_most", value: 5, of: "ours" }),
    row(`Kubernetes: list of ${PODS} Pods and ${PODS} changes`, samples.watch, {
      kind: "at_most",
      value: 3,
      of: "ratio",
    }),
  ];
}

/** A Pod of the usual size, some 4 KiB. */
function pod(n: number): unknown {
  const filler = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`example.org/annotation-${i}`, "v".repeat(60)]),
  );
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `pod-${n}`,
      uid: crypto.randomUUID(),
      resourceVersion: String(1_000 + n),
      annotations: filler,
    },
    spec: { containers: [{ name: "executor", image: "i" }] },
    status: { phase: "Running" },
  };
}

function servePods(): Parameters<ApiEndpoint["answer"]>[0] {
  const json = { headers: { "content-type": "application/json" } };
  // In one segment: a second one would wait for the first one's delayed acknowledgement.
  const one = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "x" } });
  const items = Array.from({ length: PODS }, (_, n) => pod(n));
  const list = JSON.stringify({ metadata: { resourceVersion: "900" }, items });
  const lines = items.map((object) => `${JSON.stringify({ type: "MODIFIED", object })}\n`).join("");
  return ({ path, query }) =>
    new Response(query.has("watch") ? lines : path === PATH ? list : one, json);
}

function readPod(kubernetes: Kubernetes): Promise<unknown> {
  const which = { namespace: "n", name: "x" };
  return kubernetes.call(
    "Read",
    (options) => kubernetes.core.readNamespacedPod(which, options),
    { signal },
  );
}

async function ourWatch(kubernetes: Kubernetes): Promise<void> {
  const stop = new AbortController();
  const target = {
    source: "pods",
    path: PATH,
    pageSize: PODS,
    decode: (object: unknown) => object,
  };
  let changes = 0;
  for await (const event of kubernetes.listAndWatch(target, { signal: stop.signal })) {
    if (event.kind === "changed" && ++changes === PODS) stop.abort();
  }
}

async function bareWatch(bare: (path: string) => Promise<Response>): Promise<void> {
  await (await bare(PATH)).json();
  const text = await (await bare(`${PATH}?watch=true`)).text();
  for (const line of text.trim().split("\n")) JSON.parse(line);
}

async function timed(times: number, work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  for (let i = 0; i < times; i++) await work();
  return performance.now() - started;
}

function connectionsOf({ asked }: ApiEndpoint): number {
  return new Set(asked.map(({ connection }) => connection)).size;
}
