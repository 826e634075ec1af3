import assert from "node:assert/strict";
import { createKubernetes, type Kubernetes } from "../../clients/kubernetes/client.ts";
import { hasReason, isNotFound, KubernetesError } from "../../clients/kubernetes/error.ts";
import type { WatchEvent } from "../../clients/kubernetes/watch.ts";
import type { KubernetesAccess } from "../../controller/config/config.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { eventually } from "../support/eventually.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { run } from "../support/process.ts";
import type { Stage } from "./stage.ts";

const NAMESPACE = "client";
const PATH = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
/** Bookmarks come every minute. */
const BOOKMARK_WITHIN_MS = 75_000;

interface Item {
  readonly name: string;
  readonly version: bigint;
}

/**
 * Checks the client and its list-and-watch on an API server of its own, which is restarted and frozen;
 * the same faults on a fake server are in `clients/kubernetes/watch_test.ts`.
 */
export async function checkClient({ report, signal }: Pick<Stage, "report" | "signal">) {
  await using peers = await startPeers({ which: ["kube"], say: report.say, signal });
  const access = await serviceAccount(peers);
  await using kubernetes = await createKubernetes(access, { clock: systemClock });
  // A quiet collection, from now to the end: only bookmarks are heard of it.
  let bookmarks = -1;
  await using quiet = await createKubernetes(access, {
    clock: systemClock,
    recorder: { watchEvent: () => void bookmarks++ },
  });
  const quietSince = performance.now();
  await using _quiet = follow(quiet, "/api/v1/namespaces/default/configmaps");

  await report.check("800 calls share their connections", () => manyCalls(peers, kubernetes));
  await report.check("refusals are told apart by their reason", () => reasons(kubernetes));
  await report.check("1,200 objects are listed page by page and told as one", async () => {
    await inTens(1_200, (n) => make(kubernetes, `many-${n}`));
    await using seen = follow(kubernetes, PATH);
    await eventually(() => seen.events.length > 0, { what: "the list" });
    const [first] = seen.events;
    assert.equal(first?.kind === "listed" && first.items.length, 1_200);
    await inTens(1_200, (n) => remove(kubernetes, `many-${n}`));
    await eventually(() => seen.state.size === 0, { what: "1,200 deletions", timeoutMs: 30_000 });
    assert.equal(seen.events.length, 1_201);
    return "1 list of 3 pages, 1,200 deletions told once each";
  });
  await report.check("a bookmark is heard on a quiet watch", async () => {
    await eventually(() => bookmarks > 0, {
      what: "a bookmark",
      timeoutMs: BOOKMARK_WITHIN_MS - (performance.now() - quietSince),
    });
    return `within ${((performance.now() - quietSince) / 1000).toFixed(1)} s`;
  });
  await report.check("kube-apiserver killed and restarted under load", async () => {
    // Its place is behind by then, and the new process does not know it.
    await using forgotten = follow(kubernetes, "/api/v1/namespaces/default/configmaps");
    const figures = await withFault(kubernetes, async () => {
      await signalServer(peers, "SIGKILL");
      await peers.script("kube.sh", "start");
    });
    // Its next try may be as far away as the back-off of watches allows.
    await eventually(() => forgotten.events.length === 2, {
      what: "the second list",
      timeoutMs: 60_000,
    });
    assert.deepEqual(forgotten.events.map(({ kind }) => kind), ["listed", "listed"]);
    return `${figures}; listed again after 410`;
  });
  await report.check("kube-apiserver frozen without a word", async () => {
    // Time runs fast, so that the silence limit of 90 s is over in 6.
    await using hasty = await createKubernetes(access, { clock: hastyClock(15) });
    return await withFault(hasty, async () => {
      await signalServer(peers, "SIGSTOP");
      await systemClock.sleep(10_000);
      await signalServer(peers, "SIGCONT");
    });
  });
}

/** A service account with rights on config maps, as a Pod would have it. */
async function serviceAccount(peers: Peers): Promise<KubernetesAccess> {
  const { kube, folder } = peers;
  const who = { namespace: NAMESPACE, serviceAccount: "tester" };
  await kube.kubectl(["create", "namespace", NAMESPACE]);
  await kube.kubectl(["create", "serviceaccount", "tester", "-n", NAMESPACE]);
  const verbs = "--verb=get,list,watch,create,patch,update,delete";
  await kube.kubectl(["create", "clusterrole", "tester", verbs, "--resource=configmaps"]);
  const account = `--serviceaccount=${NAMESPACE}:tester`;
  await kube.kubectl(["create", "clusterrolebinding", "tester", "--clusterrole=tester", account]);
  await kube.inCluster(`${folder}/pod`, who);
  return {
    kind: "service_account",
    host: "127.0.0.1",
    port: kube.port,
    directory: `${folder}/pod/var/run/secrets/kubernetes.io/serviceaccount`,
  };
}

async function manyCalls(peers: Peers, kubernetes: Kubernetes): Promise<string> {
  const list = () =>
    call(
      kubernetes,
      "List",
      (o) => kubernetes.core.listNamespacedConfigMap({ namespace: NAMESPACE, limit: 5 }, o),
    );
  const sockets = async () => {
    const to = ["-tnpH", "state", "established", `dport = :${peers.kube.port}`];
    const { stdout } = await run("ss", to);
    return stdout.split("\n").filter((line) => line.includes(`pid=${Deno.pid},`)).length;
  };
  await list();
  const before = await sockets();
  const started = performance.now();
  for (let i = 0; i < 800; i++) await list();
  const alone = (performance.now() - started) / 800;
  assert.ok(await sockets() <= before, "one call after the other needs no more connections");
  await inTens(800, list);
  const after = await sockets();
  assert.ok(after <= before + 20, `${after} connections, ${before} before`);
  return `${alone.toFixed(1)} ms each; ${after - before} connections more for ten at a time`;
}

async function reasons(kubernetes: Kubernetes): Promise<string> {
  const { core } = kubernetes;
  const failure = async (work: Promise<unknown>) => {
    const error = await work.then(() => undefined, (error) => error);
    assert.ok(error instanceof KubernetesError, `${error}`);
    return error;
  };
  await make(kubernetes, "one");
  const twice = await failure(make(kubernetes, "one"));
  assert.ok(hasReason(twice, "AlreadyExists"), twice.message);
  const name = { namespace: NAMESPACE, name: "one" };
  const wrongUid = await failure(
    call(
      kubernetes,
      "Delete",
      (o) =>
        core.deleteNamespacedConfigMap({ ...name, body: { preconditions: { uid: "other" } } }, o),
    ),
  );
  assert.ok(hasReason(wrongUid, "Conflict"), wrongUid.message);
  const stale = await failure(kubernetes.call(
    "Patch",
    (o) =>
      core.patchNamespacedConfigMap(
        { ...name, body: { metadata: { resourceVersion: "1" }, data: { a: "b" } } },
        o,
      ),
    { signal: AbortSignal.timeout(10_000), patch: "merge" },
  ));
  assert.ok(hasReason(stale, "Conflict"), stale.message);
  await remove(kubernetes, "one");
  assert.ok(isNotFound(await failure(remove(kubernetes, "one"))));
  const forbidden = await failure(
    call(kubernetes, "List Pods", (o) => core.listNamespacedPod({ namespace: NAMESPACE }, o)),
  );
  assert.match(forbidden.message, /^List Pods: .* 403 Forbidden: .* give the service account this/);
  return "AlreadyExists, Conflict (uid, version), NotFound, Forbidden";
}

/** Changes objects all the while `fault` lasts; afterwards what was told must be what there is. */
async function withFault(kubernetes: Kubernetes, fault: () => Promise<void>): Promise<string> {
  await using seen = follow(kubernetes, PATH);
  await eventually(() => seen.events.length > 0, { what: "the list" });
  const stop = new AbortController();
  const load = (async () => {
    for (let n = 0; !stop.signal.aborted; n++) {
      await make(kubernetes, `load-${n % 20}`).catch(() => {});
      await remove(kubernetes, `load-${(n + 10) % 20}`).catch(() => {});
    }
  })();
  await eventually(() => seen.events.length > 100, { what: "a hundred changes" });
  await fault();
  const faultEnded = performance.now();
  const last = seen.events.length;
  await eventually(() => seen.events.length > last + 100, {
    what: "changes after the fault",
    timeoutMs: 60_000,
  });
  const back = performance.now() - faultEnded;
  stop.abort();
  await load;
  const { metadata, items } = await call(
    kubernetes,
    "List",
    (o) => kubernetes.core.listNamespacedConfigMap({ namespace: NAMESPACE }, o),
  );
  const truth = new Map(items.map(({ metadata }) => [
    metadata?.name ?? "",
    BigInt(metadata?.resourceVersion ?? 0),
  ]));
  await eventually(() => {
    assert.deepEqual(seen.state, truth, `at ${metadata?.resourceVersion}`);
    return true;
  }, { what: "what was told to be what there is" });
  assert.deepEqual(seen.faults, []);
  const lists = seen.events.filter(({ kind }) => kind === "listed").length;
  return `${seen.events.length} events, ${lists} lists, back after ${(back / 1000).toFixed(1)} s`;
}

interface Followed extends AsyncDisposable {
  readonly events: readonly WatchEvent<Item>[];
  readonly state: ReadonlyMap<string, bigint>;
  /** Events out of order or told twice. */
  readonly faults: readonly string[];
}

function follow(kubernetes: Kubernetes, path: string): Followed {
  const events: WatchEvent<Item>[] = [];
  const state = new Map<string, bigint>();
  const faults: string[] = [];
  const stop = new AbortController();
  const running = (async () => {
    let newest = 0n;
    const decode = (object: Readonly<Record<string, unknown>>): Item => {
      const { name, resourceVersion } = objectOrEmpty(object.metadata);
      return { name: String(name), version: BigInt(String(resourceVersion)) };
    };
    const target = { source: "configmaps", path, decode };
    for await (const event of kubernetes.listAndWatch(target, { signal: stop.signal })) {
      events.push(event);
      if (event.kind === "listed") {
        state.clear();
        for (const { name, version } of event.items) state.set(name, version);
        continue;
      }
      const { name, version } = event.item;
      if (version <= newest) faults.push(`${event.kind} ${name} ${version} after ${newest}`);
      newest = version;
      if (event.kind === "gone") state.delete(name);
      else state.set(name, version);
    }
  })();
  return {
    events,
    state,
    faults,
    async [Symbol.asyncDispose]() {
      stop.abort(new DOMException("Stopped", "AbortError"));
      await running;
    },
  };
}

function call<T>(
  kubernetes: Kubernetes,
  action: string,
  body: Parameters<typeof kubernetes.call<T>>[1],
): Promise<T> {
  return kubernetes.call(action, body, { signal: AbortSignal.timeout(10_000) });
}

function make(kubernetes: Kubernetes, name: string): Promise<unknown> {
  const body = { metadata: { name } };
  return call(
    kubernetes,
    "Make",
    (o) => kubernetes.core.createNamespacedConfigMap({ namespace: NAMESPACE, body }, o),
  );
}

function remove(kubernetes: Kubernetes, name: string): Promise<unknown> {
  return call(
    kubernetes,
    "Remove",
    (o) => kubernetes.core.deleteNamespacedConfigMap({ namespace: NAMESPACE, name }, o),
  );
}

async function inTens(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: 10 }, async () => {
    while (next < count) await work(next++);
  }));
}

/** Sends a signal to the API server of this run, and to no other process. */
async function signalServer({ folder }: Peers, name: Deno.Signal): Promise<void> {
  const [pid] = (await Deno.readTextFile(`${folder}/pids/kube-apiserver`)).split(" ");
  Deno.kill(Number(pid), name);
}

function hastyClock(times: number): Clock {
  return {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic() * times,
    sleep: (ms, signal) => systemClock.sleep(ms / times, signal),
    timeout: (ms) => systemClock.timeout(ms / times),
  };
}
