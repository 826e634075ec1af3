import { createAddressProof } from "../../controller/leadership/address_proof.ts";
import {
  createLeaseElector,
  type LeaseElector,
} from "../../controller/leadership/lease_elector.ts";
import { DEFAULT_LEASE_TIMES } from "../../controller/leadership/lease_rules.ts";
import type { Clock } from "../../lib/clock.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createFakeLeaseServer, type FakeLeaseServer, type Route } from "../fakes/lease_server.ts";
import { createProcessClock, type ProcessClock } from "../fakes/process_clock.ts";

/** A network without delay. */
export const AT_ONCE: Route = { thereMs: 0, backMs: 0, lost: "no" };
const KEY = new Secret("k".repeat(32));

/** A network that is cut. */
export const NOWHERE: Route = { thereMs: 0, backMs: 0, lost: "nothing" };

/** A clock, and a Lease that does not exist yet. */
export function setupLease() {
  const clock = createFakeClock();
  return { clock, server: createFakeLeaseServer(clock) };
}

/** A network that a test cuts and mends. */
export function wire() {
  let route = AT_ONCE;
  return {
    route: () => route,
    cut: () => void (route = NOWHERE),
    mend: () => void (route = AT_ONCE),
  };
}

/** One process that contends for the Lease. */
export interface Contender {
  readonly self: string;
  readonly elector: LeaseElector;
  readonly clock: ProcessClock;
  readonly lost: readonly string[];
  /** True between acquire() and the end of hold(). */
  holds(): boolean;
  /** Whether check() lets it act; asked of a frozen one, too: it could be woken right now. */
  acts(): boolean;
  /** SIGKILL: nothing is given back. What is under way goes on. */
  kill(): void;
  /** A clean stop. */
  stop(): Promise<void>;
}

/** Starts a {@link Contender} that tries at once. */
export function contend(
  { clock: base, server }: { readonly clock: Clock; readonly server: FakeLeaseServer },
  self: string,
  options: {
    readonly route?: (write: boolean) => Route;
    readonly random?: () => number;
    readonly address?: string | null;
    /** By which it proves its address. */
    readonly key?: Secret;
  } = {},
): Contender {
  const clock = createProcessClock(base);
  const stopping = new AbortController();
  const lost: string[] = [];
  let holds = false;
  let dead = false;
  const elector = createLeaseElector({
    store: server.seenBy(clock, options.route),
    clock,
    random: options.random ?? (() => 0.5),
    logger: silentLogger,
    self,
    addressAnnotation: "ci.ddupan.top/admin-advertise",
    address: options.address ?? null,
    proof: createAddressProof([options.key ?? KEY]),
    onLost: (detail) => void lost.push(detail),
  }, DEFAULT_LEASE_TIMES);
  const run = async () => {
    await elector.acquire(stopping.signal);
    holds = true;
    await elector.hold(stopping.signal);
    holds = false;
  };
  const running = run().catch((error) => {
    if (!stopping.signal.aborted) throw error;
  });
  return {
    self,
    elector,
    clock,
    lost,
    holds: () => holds && !dead,
    acts() {
      if (dead) return false;
      try {
        elector.check();
        return true;
      } catch {
        return false;
      }
    },
    kill() {
      dead = true;
      clock.end();
    },
    async stop() {
      stopping.abort();
      await running;
      await elector[Symbol.asyncDispose]();
    },
  };
}
