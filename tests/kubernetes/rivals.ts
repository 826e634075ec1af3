import { eventually } from "../support/eventually.ts";
import type { KubeClient } from "../support/kube_client.ts";
import { layElection, LEASE } from "../support/lease_cluster.ts";
import type { Peers } from "../support/peers.ts";
import { startProcess } from "../support/process.ts";
import { NAMESPACE } from "./cluster.ts";
import { followLease, type LeaseState, transitionGaps } from "./lease_history.ts";

/** What a contender has said, and when (milliseconds since the epoch, of this machine's clock). */
export interface Said {
  readonly at: number;
  readonly event: string;
  /** Why it has ended; absent for most. */
  readonly why?: string | null;
}

/** One process that contends for the Lease of a {@link Ring}. */
export interface Rival {
  readonly id: string;
  readonly kind: "ours" | "client-go";
  said(): Promise<readonly Said[]>;
  /** The first event of that name at or after `since`. */
  heard(event: string, since?: number, timeoutMs?: number): Promise<Said>;
  /** SIGTERM; resolves to the exit code. */
  stop(): Promise<number>;
  /** SIGKILL; resolves to when that was. */
  kill(): Promise<number>;
  /** SIGSTOP and SIGCONT; both give the time. */
  freeze(): number;
  wake(): number;
  /** Sets its wall clock an hour on, or back (ours only). */
  setClock(direction: "on" | "back"): void;
  /** Resolves to its exit code; rejects when it has not ended within 15 s. */
  ended(): Promise<number>;
  /** When it could act at most, as far as it knows itself; while it was frozen it could not. */
  readonly out: { readonly from: number; readonly to: number }[];
}

/** A namespace with a Lease, contenders for it, and everything that became of it. */
export interface Ring extends AsyncDisposable {
  readonly namespace: string;
  ours(hostname: string, options?: { readonly server?: string }): Promise<Rival>;
  clientGo(name: string): Promise<Rival>;
  readonly rivals: readonly Rival[];
  readonly history: readonly LeaseState[];
  /** Resolves when the Lease is like that, to the state; looks from `since` on. */
  became(what: string, is: (state: LeaseState) => boolean, since: number): Promise<LeaseState>;
}

/** client-go looks once in 2.0 to 4.4 s, and may have seen the last renewal that late. */
export const CLIENT_GO_WAIT_MS = 4_400;

const CONTENDER = new URL("contender.ts", import.meta.url).pathname;

/** Makes a {@link Ring} in a namespace of its own. */
export async function openRing(
  { peers, client, namespace }: {
    readonly peers: Peers;
    readonly client: KubeClient;
    readonly namespace: string;
  },
): Promise<Ring> {
  await using stack = new AsyncDisposableStack();
  const kubeconfig = await layElection(peers, namespace);
  const lease = stack.use(followLease(client, namespace));
  const rivals: Rival[] = [];
  const owned = stack.move();
  const start = async (
    id: string,
    kind: Rival["kind"],
    command: readonly [string, ...string[]],
  ): Promise<Rival> => {
    const [program, ...args] = command;
    const logFile = `${peers.folder}/logs/${namespace}-${id}.log`;
    const rival = await startRival({ id, kind, program, args, logFile });
    owned.use(rival.process);
    rivals.push(rival);
    await rival.heard("contending", 0, 60_000);
    return rival;
  };
  return {
    namespace,
    rivals,
    history: lease.states,
    async ours(hostname, options = {}) {
      const self = `${hostname}_${crypto.randomUUID()}`;
      const file = await kubeconfig(options);
      const program = [Deno.execPath(), "run", "-A", "--no-check", CONTENDER] as const;
      const where = ["--kubeconfig", file, "--namespace", namespace];
      return await start(self, "ours", [...program, ...where, "--self", self]);
    },
    clientGo(name) {
      const by = { bin: peers.bin, kubeconfig: peers.kube.adminKubeconfig };
      return start(name, "client-go", clientGoCommand(by, { namespace, name }));
    },
    became: lease.became,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** client-go's contender as it is started. */
export function clientGoCommand(
  { bin, kubeconfig }: { readonly bin: string; readonly kubeconfig: string },
  { namespace, name }: { readonly namespace: string; readonly name: string },
): readonly [string, ...string[]] {
  return [
    `${bin}/elector`,
    `-kubeconfig=${kubeconfig}`,
    `-namespace=${namespace}`,
    `-lease=${LEASE.name}`,
    `-id=${name}`,
  ];
}

/**
 * Makes a service account beside the controller's that may contend for the product's Lease, and resolves
 * to a kubeconfig of it: the admission policy lets nobody else.
 */
export async function layContender({ kube, folder }: Peers): Promise<string> {
  const name = "contender";
  const who = { namespace: NAMESPACE.controller, serviceAccount: name };
  const role = ["-n", NAMESPACE.executors];
  await kube.kubectl(["create", "serviceaccount", name, "-n", who.namespace]);
  const verbs = "--verb=get,create,update";
  await kube.kubectl(["create", "role", name, verbs, "--resource=leases", ...role]);
  await kube.kubectl([
    "create",
    "rolebinding",
    name,
    `--role=${name}`,
    ...role,
    `--serviceaccount=${who.namespace}:${name}`,
  ]);
  return await kube.kubeconfig(`${folder}/${name}.kubeconfig`, who);
}

/** Starts a contender; disposing of its `process` ends it. */
export async function startRival(of: {
  readonly id: string;
  readonly kind: Rival["kind"];
  readonly program: string;
  readonly args: readonly string[];
  readonly logFile: string;
}): Promise<Rival & { readonly process: AsyncDisposable }> {
  const { id, kind, logFile } = of;
  const running = await startProcess(of.program, of.args, { logFile });
  const out: { from: number; to: number }[] = [];
  let code: number | null = null;
  const exited = running.exited.then((known) => {
    code = known;
  });
  const send = (signal: Deno.Signal) => {
    if (code === null) Deno.kill(running.pid, signal);
    return Date.now();
  };
  const said = async () =>
    (await Deno.readTextFile(logFile)).split("\n").flatMap((line): Said[] => {
      try {
        const { at, event, why } = JSON.parse(line);
        return [{ at: Date.parse(at), event, ...why === undefined ? {} : { why } }];
      } catch {
        return []; // client-go's own log, or a line that is being written.
      }
    });
  return {
    id,
    kind,
    said,
    out,
    ended: async () => {
      const end = () => code === null ? false : { code };
      return (await eventually(end, { what: `the end of ${id}`, timeoutMs: 15_000 })).code;
    },
    heard: (event, since = 0, timeoutMs = 40_000) =>
      eventually(
        async () => (await said()).find((one) => one.event === event && one.at >= since),
        { what: `"${event}" of ${id}`, timeoutMs },
      ),
    stop: () => running.stop(15_000),
    async kill() {
      const at = send("SIGKILL");
      out.push({ from: at, to: Infinity });
      await exited;
      return at;
    },
    freeze() {
      const at = send("SIGSTOP");
      out.push({ from: at, to: Infinity });
      return at;
    },
    wake() {
      const at = Date.now();
      const last = out.at(-1);
      if (last !== undefined) last.to = at;
      send("SIGCONT");
      return at;
    },
    setClock: (direction) => void send(direction === "on" ? "SIGUSR1" : "SIGUSR2"),
    process: {
      async [Symbol.asyncDispose]() {
        send("SIGCONT"); // One that is frozen hears no SIGTERM.
        await running.stop(5_000);
      },
    },
  };
}

/** Times at which two acted, in words; none is what one hopes for. */
export async function overlaps({ rivals }: Pick<Ring, "rivals">): Promise<string[]> {
  const spans = (await Promise.all(rivals.map(spansOf))).flat();
  const effects = await Promise.all(rivals.map(async (rival) => ({
    id: rival.id,
    times: rival.kind === "ours"
      ? (await rival.said()).flatMap(({ at, event }) => event === "effect" ? [at] : [])
      : [],
  })));
  return effects.flatMap(({ id, times }) =>
    spans.filter((span) => span.id !== id).flatMap((span) => {
      const within = times.filter((at) => at > span.from && at < span.to);
      return within.length === 0 ? [] : [`${within.length} effects of ${id} while ${span.id} led`];
    })
  );
}

/** When a contender acted: ours from its first to its last effect, client-go's as long as it believed. */
async function spansOf(rival: Rival) {
  const said = await rival.said();
  const spans: { readonly id: string; readonly from: number; readonly to: number }[] = [];
  let from: number | null = null;
  let last = 0;
  const close = (to: number) => {
    if (from !== null) spans.push({ id: rival.id, from, to });
    from = null;
  };
  for (const { at, event } of said) {
    if (rival.kind === "ours") {
      if (event === "effect") {
        from ??= at;
        last = at;
      }
      if (event === "stopped" || event === "lost") close(last);
    } else {
      if (event === "started") from = at;
      if (event === "stopped") close(at);
    }
  }
  close(rival.kind === "ours" ? last : Infinity);
  // What was frozen or dead did nothing.
  return spans.flatMap((span) => without(span, rival.out));
}

function without(
  span: { readonly id: string; readonly from: number; readonly to: number },
  out: Rival["out"],
) {
  return out.reduce((left, gap) =>
    left.flatMap((one) => [
      { ...one, to: Math.min(one.to, gap.from) },
      { ...one, from: Math.max(one.from, gap.to) },
    ]).filter((one) => one.from < one.to), [span]);
}

/** Gaps in `leaseTransitions`; client-go makes a deleted Lease anew with 0. */
export function gaps({ history, rivals }: Pick<Ring, "history" | "rivals">): string[] {
  const anew = new Set(rivals.flatMap(({ id, kind }) => kind === "client-go" ? [id] : []));
  return transitionGaps(history, (holder) => anew.has(holder));
}
