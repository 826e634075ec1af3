import { type CutProxy, startCutProxy } from "../support/cut_proxy.ts";
import { type HoldProxy, startHoldProxy } from "../support/hold_proxy.ts";
import { startNatsProxy } from "../support/nats_proxy.ts";
import type { Peers } from "../support/peers.ts";
import { type RecordedRequest, startRecordingProxy } from "../support/recording_proxy.ts";
import { startRecordingTlsProxy } from "../support/recording_tls_proxy.ts";
import type { Effect } from "./terms.ts";

/** What one replica does, seen at proxies of its own in front of Gitea, NATS and the API server. */
export interface Outside extends AsyncDisposable {
  /** Variables by which the replica takes its ways through here. */
  readonly env: Readonly<Record<string, string>>;
  /** The way to the API server, to be cut. */
  readonly api: CutProxy;
  /** The way to Gitea behind the recorder, where answers can be held. */
  readonly gitea: HoldProxy;
  /** Everything that was no read, in the order in which it came; `pod` is the replica's own. */
  effects(pod: string): Effect[];
  /** When it wrote to a Lease; milliseconds since the epoch. */
  leaseWrites(): number[];
}

/** What was sent to NATS: the subject, and whether it is the audit's word of a refusal. */
interface Published {
  readonly at: number;
  readonly subject: string;
  readonly refusal: boolean;
}

const BODY_BYTES = 512;
/** Of the machine's clock; added to the monotonic one, by which the proxies tell the time. */
const ORIGIN = Date.now() - performance.now();
const RPC = /^\/api\/actions\/runner\.v1\.RunnerService\/(\w+)$/;
/** Asking of JetStream, and reading of it: consumers without a name are made by readers. */
const NATS_READ =
  /^\$JS\.(FC\.|API\.(INFO$|DIRECT\.GET\.|STREAM\.(INFO|NAMES|LIST|MSG\.GET)|CONSUMER\.INFO\.))/;
/** Whoever refuses an action says so in the audit, leader or not: nothing is changed by it. */
const AUDIT = /^ci\.event\.audit$/;
const SEALED_TASK = /^ci\.assignment\.(pod|vm)$/;
const LEASES = /\/leases(\/|$)/;

/** Starts the proxies of one replica. */
export async function openOutside(peers: Pick<Peers, "gitea" | "nats" | "kube">): Promise<Outside> {
  await using stack = new AsyncDisposableStack();
  const held = stack.use(await startHoldProxy(peers.gitea.address));
  const behind = { hostname: "127.0.0.1", port: Number(new URL(held.url).port) };
  const gitea = stack.use(await startRecordingProxy(behind, { bodyBytes: BODY_BYTES }));
  // The API server's own certificate: what trusts it trusts this.
  const pki = peers.kube.caFile.replace(/[^/]+$/, "");
  const [ca, cert, key] = await Promise.all(
    ["ca.crt", "apiserver.crt", "apiserver.key"].map((name) => Deno.readTextFile(pki + name)),
  );
  if (ca === undefined || cert === undefined || key === undefined) throw new TypeError("No files");
  const kube = stack.use(
    startRecordingTlsProxy(peers.kube.url, { ca, cert, key, bodyBytes: BODY_BYTES }),
  );
  const api = stack.use(startCutProxy({ hostname: "127.0.0.1", port: kube.port }));
  const { hostname, port } = new URL(peers.nats.url);
  const nats = stack.use(startNatsProxy({ hostname, port: Number(port) }));
  const published: Published[] = [];
  nats.hold(({ way, subject, text }) => {
    if (way === "request") {
      const refusal = AUDIT.test(subject) && text.includes('"result":"refused"');
      published.push({ at: performance.now(), subject, refusal });
    }
    return false;
  });
  const owned = stack.move();
  return {
    env: {
      GITEA_URL: gitea.url,
      NATS_URL: nats.url,
      KUBERNETES_SERVICE_PORT: String(api.port),
    },
    api,
    gitea: held,
    leaseWrites: () =>
      kube.requests.flatMap((one) =>
        one.method !== "GET" && LEASES.test(one.path) ? [one.at + ORIGIN] : []
      ),
    effects: (pod) =>
      [
        ...gitea.requests.flatMap(atGitea),
        ...kube.requests.flatMap((one) => atKubernetes(one, pod)),
        ...published.flatMap(atNats),
      ].map((one) => ({ ...one, at: one.at + ORIGIN })).sort((a, b) => a.at - b.at),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function atGitea({ at, method, path, body }: RecordedRequest): Effect[] {
  const [, name] = RPC.exec(path) ?? [];
  if (name === undefined) {
    // Runners of jobs ask with the same address: what they do is not the controller's.
    return method === "GET" || !path.startsWith("/api/v1/")
      ? []
      : [{ at, where: "Gitea", what: `${method} ${path}`, kind: "effect" }];
  }
  // Asked with the task 0, which nobody has, Gitea tells whether it knows the registration.
  const question = name === "UpdateTask" && body.length <= 2;
  return question ? [] : [{ at, where: "Gitea", what: name, kind: "effect" }];
}

function atNats({ at, subject, refusal }: Published): Effect[] {
  if (NATS_READ.test(subject) || refusal) return [];
  const kind = SEALED_TASK.test(subject)
    ? "store"
    : subject.startsWith("$JS.API.STREAM.CREATE.")
    ? "stream made"
    : "effect";
  // Of an acknowledgement the first tokens say which consumer's it is.
  const what = subject.startsWith("$JS.ACK.") ? subject.split(".").slice(0, 4).join(".") : subject;
  return [{ at, where: "NATS", what, kind }];
}

function atKubernetes({ at, method, path, body }: RecordedRequest, pod: string): Effect[] {
  if (method === "GET" || LEASES.test(path)) return [];
  const own = path.endsWith(`/pods/${pod}`) && method === "PATCH" &&
    new TextDecoder().decode(body).includes('/leader":null');
  return [{
    at,
    where: "Kubernetes",
    what: `${method} ${path}`,
    kind: own ? "own label off" : "effect",
  }];
}
