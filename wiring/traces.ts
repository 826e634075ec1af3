import type { Config } from "../controller/config/config.ts";
import { headerList } from "../controller/config/values.ts";
import type { Placement } from "../controller/store_task.ts";
import type { SpanSink } from "../controller/traces/span.ts";
import type { Traces } from "../controller/traces/traces.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";

/** The way to the receiver of traces; undefined when none is configured. Loaded only where it is used. */
export async function openTraces(
  config: Pick<Config, "traces" | "hostname">,
  deps: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly version: string;
  },
): Promise<SpanSink & AsyncDisposable | undefined> {
  if (config.traces === null) return undefined;
  const { endpoint, headers, caFile, serviceName, attributes } = config.traces;
  const { openSpanSink } = await import("../clients/opentelemetry/span_sink.ts");
  deps.logger.info("traces are sent", { component: "traces", endpoint });
  return openSpanSink({
    endpoint,
    headers: Object.assign({}, ...headers.map((secret) => headerList(secret.reveal()))),
    ca: caFile === null ? null : await Deno.readTextFile(caFile),
    resource: {
      "service.version": deps.version,
      "service.instance.id": config.hostname,
      ...attributes,
      "service.name": serviceName,
    },
    version: deps.version,
  }, deps);
}

/** `place`, whose assignments carry their trace in the message's headers. */
export function tracedPlace(
  place: (task: Task) => Promise<Placement>,
  traces: Pick<Traces, "fetched" | "parentOf"> | undefined,
): (task: Task) => Promise<Placement> {
  if (traces === undefined) return place;
  return async (task) => {
    const placed = await place(task);
    if (placed.kind !== "assignment") return placed;
    const { id } = placed.info;
    traces.fetched(id);
    return { ...placed, headers: { ...placed.headers, traceparent: traces.parentOf(id) } };
  };
}
