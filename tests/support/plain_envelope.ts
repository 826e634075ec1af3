import { gzipSync } from "node:zlib";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import { type Task, TaskSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { toBinary } from "../../proto/runtime.ts";

/** The unsealed envelope of version 1, as an older release stored it: gzip where that is smaller. */
export function encodePlainEnvelope(info: AssignmentInfo, task: Task): Uint8Array {
  const plain = toBinary(TaskSchema, task);
  const zipped = new Uint8Array(gzipSync(plain));
  return new TextEncoder().encode(JSON.stringify({
    version: 1,
    id: info.id,
    backend: info.backend,
    identity: info.identity.spiffeId,
    task: (zipped.length < plain.length ? zipped : plain).toBase64(),
  }));
}
