import type { Call } from "../../controller/backend.ts";
import type { BackendName } from "../../controller/model/ids.ts";
import { type AssignmentQueue, QueueError } from "../../controller/queue.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { askApi, nanos, persist, store } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { consumeMessages } from "./consume.ts";
import { apiFailure, ERR_CODE } from "./errors.ts";
import { numberAt } from "./json.ts";
import { createHeld, type Held } from "./lost_deliveries.ts";
import { assignmentOf, MESSAGE_ID, removeMessage } from "./message.ts";
import { readStored } from "./stored.ts";
import type { StreamNames } from "./streams.ts";

/** A message in hand is told to be in progress every 15 s. */
const ACK_WAIT_MS = 45_000;
const MAX_ACK_PENDING = 10_000;
/** Headers are small; what the server counts beside the payload stays below this. */
const HEADER_ROOM = 1_024;

/** The queue on JetStream. The streams must exist: `ensureStreams`. */
export function createQueue(
  connection: NatsConnection,
  deps: StreamNames & {
    readonly clock: Clock;
    readonly logger: Logger;
    /** For tests; default 45 s. */
    readonly ackWaitMs?: number;
  },
): AssignmentQueue {
  const { stream, subjectBase, clock } = deps;
  const logger = deps.logger.child({ component: "queue" });
  const subjectOf = (backend: BackendName) => `${subjectBase}.${backend}`;

  const held: Readonly<Record<BackendName, Held>> = { pod: createHeld(), vm: createHeld() };

  const makeConsumer = (backend: BackendName, call: Call) =>
    askApi(connection, {
      // Without an action: made if absent, brought up to date if present.
      path: `CONSUMER.CREATE.${stream}.${backend}.${subjectOf(backend)}`,
      body: {
        stream_name: stream,
        config: {
          name: backend,
          durable_name: backend,
          filter_subject: subjectOf(backend),
          ack_policy: "explicit",
          deliver_policy: "all",
          ack_wait: nanos(deps.ackWaitMs ?? ACK_WAIT_MS),
          max_deliver: -1,
          max_ack_pending: MAX_ACK_PENDING,
        },
      },
    }, call);

  const deleteConsumer = async (backend: BackendName, call: Call) => {
    const gone = await askApi(connection, { path: `CONSUMER.DELETE.${stream}.${backend}` }, call);
    if (gone.kind === "error" && gone.errCode !== ERR_CODE.consumerNotFound) {
      throw apiFailure(`Delete consumer "${backend}"`, gone);
    }
  };

  const ensureConsumer = async (backend: BackendName, call: Call) => {
    let answer = await makeConsumer(backend, call);
    if (answer.kind === "error" && answer.errCode === ERR_CODE.consumerUnchangeable) {
      // Somebody made it otherwise. It holds nothing that a new one does not find in the stream.
      logger.warn("consumer is made again", { backend, detail: answer.description });
      await deleteConsumer(backend, call);
      answer = await makeConsumer(backend, call);
    }
    if (answer.kind === "error") throw apiFailure(`Make consumer "${backend}"`, answer);
  };

  const consumerInfo = (backend: BackendName, call: Call) =>
    askApi(connection, { path: `CONSUMER.INFO.${stream}.${backend}` }, call);

  const resetConsumer = (backend: BackendName, call: Call) =>
    persist(clock, async () => {
      await deleteConsumer(backend, call);
      await ensureConsumer(backend, call);
    }, call);

  const counts = (backend: BackendName, call: Call) =>
    persist(clock, async () => {
      let info = await consumerInfo(backend, call);
      if (info.kind === "error" && info.errCode === ERR_CODE.consumerNotFound) {
        await ensureConsumer(backend, call);
        info = await consumerInfo(backend, call);
      }
      if (info.kind === "error") throw apiFailure(`Look at consumer "${backend}"`, info);
      return {
        numPending: numberAt(info.body, "num_pending"),
        numAckPending: numberAt(info.body, "num_ack_pending"),
      };
    }, call);

  return {
    get maxPayload() {
      return connection.facts()?.maxPayload ?? 1_048_576;
    },
    async publish({ id, backend, data, headers, again }, call) {
      const limit = this.maxPayload;
      if (data.length + HEADER_ROOM > limit) {
        throw new QueueError(
          "too_large",
          `Store ${id}: the sealed task has ${data.length} bytes, NATS takes ${limit} with headers (max_payload)`,
          { retryable: false },
        );
      }
      return await store(connection, {
        subject: subjectOf(backend),
        data,
        headers: { ...headers, [MESSAGE_ID]: again === undefined ? id : `${id}:${again}` },
        action: `Store ${id}`,
      }, call);
    },
    consume: (backend, demand, { signal }) =>
      consumeMessages({
        connection,
        stream,
        backend,
        demand,
        clock,
        logger,
        held: held[backend],
        ensureConsumer: (call) => ensureConsumer(backend, call),
        ackPending: async (call) => (await counts(backend, call)).numAckPending,
        resetConsumer: (call) => resetConsumer(backend, call),
      }, signal),
    resetConsumer,
    counts,
    list: (backend, { fromSequence, limit }, call) =>
      persist(clock, async () => {
        const page = { stream, subject: subjectOf(backend), fromSequence, limit };
        const messages = await readStored(connection, page, { ...call, clock });
        return messages.map(({ sequence, storedAt, headers, data }) => ({
          id: assignmentOf(headers),
          backend,
          sequence,
          storedAt,
          headers,
          data,
        }));
      }, call),
    async remove(sequence, call) {
      await persist(clock, () => removeMessage(connection, { stream, sequence }, call), call);
      for (const each of Object.values(held)) each.forget(sequence);
    },
  };
}
