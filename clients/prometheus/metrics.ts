import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { BACKENDS } from "../../controller/model/ids.ts";
import type { Recorder } from "../../controller/recorder.ts";
import type { Views } from "../../controller/views/views.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import { createBounded } from "./bounded.ts";
import { createViewGauges } from "./gauges.ts";
import { createLoopDelay } from "./loop_delay.ts";

/** The program's measurements. Disposing ends the sampling of the event loop. */
export interface Metrics extends AsyncDisposable {
  readonly recorder: Recorder;
  /** Everything in Prometheus' text format. Never rejects because a view is not ready. */
  text(): Promise<string>;
  /** Of {@link Metrics.text}. */
  readonly contentType: string;
}

const PHASE_SECONDS = [
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  5,
  10,
  30,
  60,
  120,
  300,
  600,
  1800,
  3600,
  7200,
];
const REQUEST_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Makes {@link Metrics} with a registry of their own. */
export function createMetrics(
  options: { readonly views: Views; readonly clock?: Clock; readonly logger?: Logger },
): Metrics {
  const { views, clock = systemClock, logger = silentLogger } = options;
  const registry = new Registry();
  const registers = [registry];
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    new Counter({ name, help, labelNames: [...labelNames], registers });
  const histogram = <T extends string>(
    name: string,
    help: string,
    labels: { readonly names: readonly T[]; readonly buckets: readonly number[] },
  ) =>
    new Histogram({
      name,
      help,
      labelNames: [...labels.names],
      buckets: [...labels.buckets],
      registers,
    });
  const gauge = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    new Gauge({ name, help, labelNames: [...labelNames], registers });

  const fetched = counter("gdr_fetch_total", "Answers to FetchTask", ["result"]);
  const published = counter("gdr_publish_total", "Publishes of assignments", ["result"]);
  const transitions = counter("gdr_transitions_total", "Events of assignments", [
    "backend",
    "event",
  ]);
  const phases = histogram("gdr_phase_seconds", "Time that assignments spend in each phase", {
    names: ["backend", "phase"],
    buckets: PHASE_SECONDS,
  });
  const requests = counter("gdr_facade_requests_total", "Requests of executors", [
    "method",
    "code",
  ]);
  const requestSeconds = histogram("gdr_facade_request_seconds", "Time to answer executors", {
    names: ["method"],
    buckets: REQUEST_SECONDS,
  });
  const failures = counter("gdr_executor_failures_total", "Executors that failed", [
    "backend",
    "reason",
  ]);
  const recovered = counter("gdr_recovered", "Executors found again after a start", ["backend"]);
  const leaks = counter(
    "gdr_slot_leaks_total",
    "Slots held by nothing: always a fault of ours",
    [],
  );
  const deliveries = counter("gdr_webhook_deliveries_total", "Deliveries of Gitea's webhook", [
    "result",
  ]);
  const svid = gauge("gdr_svid_expiry_seconds", "Time until our own SVID expires; NaN if none", []);
  const ages = gauge("gdr_watch_age_seconds", "Time since the last word of a source", ["source"]);
  const delay = gauge("gdr_event_loop_delay_seconds", "Worst delay since the last scrape", []);
  const memory = gauge("process_resident_memory_bytes", "Resident memory", []);
  const viewGauges = createViewGauges(views, registry);
  const loop = createLoopDelay(clock);

  for (const result of ["task", "empty", "throttled", "error"]) fetched.inc({ result }, 0);
  for (const result of ["stored", "duplicate", "error"]) published.inc({ result }, 0);
  for (const backend of BACKENDS) recovered.inc({ backend }, 0);

  const method = createBounded(32);
  const code = createBounded(32);
  const phaseName = createBounded(32);
  const source = createBounded(16);
  const lastWord = new Map<string, number>();
  let svidExpiry: number | null = null;

  const recorder: Recorder = {
    fetched: (result) => fetched.inc({ result }),
    published: (result) => published.inc({ result }),
    transition: (backend, event) => transitions.inc({ backend, event }),
    phase: (backend, phase, seconds) =>
      phases.observe({ backend, phase: phaseName(phase) }, seconds),
    facadeRequest(name, status, seconds) {
      requests.inc({ method: method(name), code: code(status) });
      requestSeconds.observe({ method: method(name) }, seconds);
    },
    executorFailed: (backend, reason) => failures.inc({ backend, reason }),
    recovered: (backend, count) => recovered.inc({ backend }, count),
    svidExpiry(at) {
      svidExpiry = at;
    },
    watchEvent: (name) => void lastWord.set(source(name), clock.monotonic()),
    slotLeak: () => leaks.inc(),
    webhook: (result) => deliveries.inc({ result }),
  };

  const readGauges = () => {
    svid.set(svidExpiry === null ? NaN : (svidExpiry - clock.now()) / 1000);
    for (const [name, at] of lastWord) ages.set({ source: name }, (clock.monotonic() - at) / 1000);
    delay.set(loop.take());
    memory.set(Deno.memoryUsage().rss);
    try {
      viewGauges.read();
    } catch (error) {
      // Metrics of everything else are needed most when the views are broken.
      logger.warn("views cannot be measured", { error });
    }
  };

  return {
    recorder,
    async text() {
      readGauges();
      return await registry.metrics();
    },
    contentType: registry.contentType,
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}
