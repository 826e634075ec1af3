import assert from "node:assert/strict";
import { createEventLog } from "../../clients/nats/event_log.ts";
import { createQueue } from "../../clients/nats/queue.ts";
import { createRecords } from "../../clients/nats/records.ts";
import { placeTask } from "../../controller/model/assignment.ts";
import { createEnvelopeCodec } from "../../controller/model/envelope.ts";
import { Secret } from "../../lib/secret.ts";
import { call } from "../support/calls.ts";
import { findSecretInFiles } from "../support/find_secret.ts";
import { DEPS, NAMES, openNatsWorld } from "../support/nats_world.ts";
import { encodePlainEnvelope } from "../support/plain_envelope.ts";
import { sampleTask } from "../support/tasks.ts";
import { recordOf } from "./records_suite.ts";

const SECRET = "planted-3f9c1b7a-secret-of-a-job";
const options = { trustDomain: "example.org", defaultBackend: null };

// Two shapes: a task that gzip makes smaller is packed differently from one that it does not.
const shapes: [string, Record<string, string>][] = [
  ["a small task", { PASSWORD: SECRET }],
  ["a task that is compressed", { PASSWORD: SECRET, FILLER: "filler ".repeat(2_000) }],
];
for (const [name, secrets] of shapes) {
  Deno.test(`a secret of ${name} is not in the server's files, but a v1 envelope shows it`, async () => {
    await using world = await openNatsWorld({ jetstreamSync: "always" });
    const queue = createQueue(world.connection, { ...NAMES, ...DEPS });
    const task = sampleTask({ secrets });
    const placed = placeTask(task, options);
    assert.ok(placed.kind === "placed");
    const { info } = placed;
    const codec = createEnvelopeCodec([new Secret("key of thirty-two characters here")], options);
    const data = await codec.seal(info, task);
    await queue.publish({ id: info.id, backend: info.backend, data, headers: {} }, call);
    using records = createRecords(world.connection, DEPS);
    await records.create(info.taskId, recordOf({ repository: info.repository }), call);
    {
      await using log = createEventLog(world.connection, DEPS);
      log.append({
        at: 1,
        event: "received",
        component: "worker",
        backend: info.backend,
        assignment: info.id,
        executor: null,
        phase: null,
        retryDelayMs: 0,
        detail: null,
      });
      await log.flush(call.signal);
    }
    assert.deepEqual(await findSecretInFiles(await world.nats.dumpStore(), SECRET), []);

    const plain = encodePlainEnvelope(info, task);
    const message = { id: info.id, backend: "vm", data: plain, headers: {} } as const;
    await queue.publish({ ...message, id: `${info.id}9` as typeof info.id }, call);
    const found = await findSecretInFiles(await world.nats.dumpStore(), SECRET);
    assert.notEqual(found.length, 0);
  });
}
