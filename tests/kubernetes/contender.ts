/**
 * A process that does nothing but contend for a Lease, with the product's own elector, client and rights.
 * Prints one JSON line per event; while it may act it does an "effect" every 20 ms, which is a line,
 * too. SIGUSR1 and SIGUSR2 set its wall clock an hour on and back. Exit code 3 when it has lost.
 *
 * `contender.ts --kubeconfig FILE --namespace NAMESPACE --self NAME`
 */
import { parseArgs } from "node:util";
import { createKubernetes } from "../../clients/kubernetes/client.ts";
import { createLeaseStore } from "../../clients/kubernetes/leases.ts";
import { createAddressProof } from "../../controller/leadership/address_proof.ts";
import { createLeaseElector } from "../../controller/leadership/lease_elector.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { LEASE } from "../support/lease_cluster.ts";

const HOUR_MS = 3_600_000;
const EFFECT_MS = 20;

async function contend(
  options: { readonly kubeconfig: string; readonly namespace: string; readonly self: string },
): Promise<number> {
  const { kubeconfig, namespace, self } = options;
  const encoder = new TextEncoder();
  const print = (event: string, more: Readonly<Record<string, unknown>> = {}) => {
    const line = { at: new Date().toISOString(), id: self, event, ...more };
    Deno.stdout.writeSync(encoder.encode(`${JSON.stringify(line)}\n`));
  };
  let wallMs = 0;
  const clock: Clock = { ...systemClock, now: () => Date.now() + wallMs };
  const jump = (ms: number) => () => {
    wallMs += ms;
    print("wall clock set", { byMs: ms });
  };
  Deno.addSignalListener("SIGUSR1", jump(HOUR_MS));
  Deno.addSignalListener("SIGUSR2", jump(-HOUR_MS));
  const stop = new AbortController();
  Deno.addSignalListener("SIGTERM", () => stop.abort());

  let lost: string | null = null;
  const ended = new AbortController();
  const deps = { clock, logger: silentLogger };
  await using kubernetes = await createKubernetes({ kind: "kubeconfig", path: kubeconfig }, deps);
  await using store = createLeaseStore(kubernetes, {
    namespace,
    name: LEASE.name,
    logger: silentLogger,
  });
  await using elector = createLeaseElector({
    store,
    clock,
    random: Math.random,
    logger: silentLogger,
    self,
    addressAnnotation: "ci.ddupan.top/admin-advertise",
    address: `${self}.example.org:8080`,
    proof: createAddressProof([new Secret("k".repeat(32))]),
    onLost(detail) {
      lost = detail;
      ended.abort();
    },
  });
  print("contending");
  const act = async () => {
    const either = AbortSignal.any([stop.signal, ended.signal]);
    while (!either.aborted) {
      try {
        elector.check();
        print("effect");
      } catch {
        print("refused");
      }
      await clock.sleep(EFFECT_MS, either).catch(() => {});
    }
  };
  try {
    await elector.acquire(stop.signal);
  } catch {
    return 0;
  }
  print("started");
  await Promise.all([elector.hold(AbortSignal.any([stop.signal, ended.signal])), act()]);
  print(lost === null ? "stopped" : "lost", { why: lost });
  return lost === null ? 0 : 3;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      kubeconfig: { type: "string", default: "" },
      namespace: { type: "string", default: "" },
      self: { type: "string", default: "" },
    },
  });
  Deno.exit(await contend(values));
}
