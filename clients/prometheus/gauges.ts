import { Gauge, type Registry } from "prom-client";
import type { BackendView, Views } from "../../controller/views/views.ts";

/** Gauges that are read from the views when they are scraped. */
export interface ViewGauges {
  /** Reads the views; what they cannot tell now is left out (labelled) or NaN, never 0. */
  read(): void;
}

/** States of an assignment that hold a slot, and are therefore always shown, with 0 too. */
const HOLDING = ["admitted", "starting", "ready", "claimed", "running", "terminal"] as const;

/** Makes the gauges of leader, assignments, slots and build. */
export function createViewGauges(views: Views, registry: Registry): ViewGauges {
  const gauge = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    new Gauge({ name, help, labelNames: [...labelNames], registers: [registry] });
  const leader = gauge("gdr_leader", "1 while this process leads", []);
  const build = gauge("gdr_build_info", "Always 1; what is running", [
    "version",
    "deno",
    "profile",
  ]);
  const assignments = gauge("gdr_assignments", "Live assignments by state", ["backend", "state"]);
  const slots = gauge("gdr_slots", "Slots: used, free, and held by executors that cannot be read", [
    "backend",
    "state",
  ]);
  const parked = gauge("gdr_parked", "Assignments put aside after repeated failures", ["backend"]);

  const readBackend = (view: BackendView) => {
    const backend = view.name;
    const counts = new Map<string, number>(HOLDING.map((state) => [state, 0]));
    for (const { state } of view.slots) counts.set(state, (counts.get(state) ?? 0) + 1);
    counts.set("stored", view.waiting);
    counts.set("parked", view.parked);
    for (const [state, count] of counts) assignments.set({ backend, state }, count);
    slots.set({ backend, state: "used" }, view.used);
    slots.set({ backend, state: "free" }, view.free);
    slots.set({ backend, state: "unknown" }, view.unknown);
    parked.set({ backend }, view.parked);
  };

  return {
    read() {
      for (const labelled of [build, assignments, slots, parked]) labelled.reset();
      leader.set(NaN);
      const { version, profile } = views.status();
      build.set({ version, profile, deno: Deno.version.deno }, 1);
      leader.set(views.leader().leading ? 1 : 0);
      views.backends().forEach(readBackend);
    },
  };
}
