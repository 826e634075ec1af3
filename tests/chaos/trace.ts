import {
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { fromBinary } from "../../proto/runtime.ts";
import type { HoldProxy, ProxiedCall } from "../support/hold_proxy.ts";

/** What came to the forge about each task, for whoever looks into a failed round. */
export interface Trace extends Disposable {
  /** The last calls about a task, one line each. */
  of(taskId: number): readonly string[];
}

const MOST_LINES = 60;

/** Listens at the proxy; nothing is held. */
export function startTrace(proxy: HoldProxy): Trace {
  const lines = new Map<number, string[]>();
  const begin = performance.now();
  const point = proxy.hold((call) => {
    const said = describe(call);
    if (said !== undefined) {
      const of = lines.get(said.taskId) ?? [];
      of.push(`${((performance.now() - begin) / 1000).toFixed(3)} ${said.text}`);
      lines.set(said.taskId, of.slice(-MOST_LINES));
    }
    return false;
  });
  return {
    of: (taskId) => lines.get(taskId) ?? [],
    [Symbol.dispose]: () => point[Symbol.dispose](),
  };
}

function describe(call: ProxiedCall): { taskId: number; text: string } | undefined {
  const { name, request, answer } = call;
  const way = answer === null ? "->" : `<- ${answer.status}`;
  if (name === "UpdateLog") {
    const { taskId, index, rows, noMore } = fromBinary(UpdateLogRequestSchema, request);
    const ack = answer?.status === 200
      ? ` ack ${fromBinary(UpdateLogResponseSchema, answer.body).ackIndex}`
      : "";
    const text = `${way} UpdateLog from ${index}, ${rows.length} rows${
      noMore ? ", no more" : ""
    }${ack}`;
    return { taskId: Number(taskId), text };
  }
  if (name !== "UpdateTask") return undefined;
  const { state } = fromBinary(UpdateTaskRequestSchema, request);
  return { taskId: Number(state?.id), text: `${way} UpdateTask with result ${state?.result}` };
}
