import { placeTask } from "../controller/model/assignment.ts";
import type { EnvelopeCodec } from "../controller/model/envelope.ts";
import type { BackendName } from "../controller/model/ids.ts";
import type { Placement } from "../controller/store_task.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";

/** Decides what a fetched task becomes, and seals it. */
export function createPlace(
  codec: EnvelopeCodec,
  options: { readonly trustDomain: string; readonly defaultBackend: BackendName | null },
): (task: Task) => Promise<Placement> {
  return async (task) => {
    const placed = placeTask(task, options);
    if (placed.kind === "permanent") {
      if (placed.taskId === null) throw new TypeError(`Place a task: ${placed.detail}`);
      return { kind: "permanent", taskId: placed.taskId, detail: placed.detail };
    }
    const { info } = placed;
    const envelope = await codec.seal(info, task);
    // For people who look into the queue with NATS's own tools, and for a message that cannot be opened.
    const headers = { "Gdr-Repository": info.repository, "Gdr-Job": info.job };
    return {
      kind: "assignment",
      info,
      envelope,
      headers: info.runId === null ? headers : { ...headers, "Gdr-Run-Id": info.runId },
    };
  };
}
