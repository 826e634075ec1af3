import type { Msg } from "nats";
import type { Call } from "../../controller/backend.ts";
import { QueueError, type StoredMessage } from "../../controller/queue.ts";
import type { AssignmentId, BackendName } from "../../controller/model/ids.ts";
import type { Clock } from "../../lib/clock.ts";
import { askApi, persist, plainHeaders } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { apiFailure, ERR_CODE } from "./errors.ts";
import type { Headers } from "./requester.ts";
import { messageAt } from "./stored.ts";

/** Header with the message's id, by which JetStream knows a message that is published twice. */
export const MESSAGE_ID = "Nats-Msg-Id";
const ACK = new TextEncoder().encode("+ACK");
const IN_PROGRESS = new TextEncoder().encode("+WPI");
/** Unanswered acknowledgements after which the message is looked at, and then removed. */
const DOUBTS = 2;

/** A delivered message as the controller knows it. */
export function storedMessage(
  message: Msg,
  context: {
    readonly connection: NatsConnection;
    readonly stream: string;
    readonly backend: BackendName;
    readonly clock: Clock;
  },
): StoredMessage {
  const { connection, stream, clock } = context;
  const reply = message.reply ?? "";
  const { deliveries, sequence, storedAt } = delivery(reply);
  const headers = plainHeaders(message);

  /**
   * Sends a final word until the server has confirmed it. No answer may mean that the word was done,
   * that it was lost, or that this delivery is not valid any more (the consumer was made again): then
   * the message itself decides, and is removed by its sequence.
   */
  const finish = async (word: Uint8Array, call: Call): Promise<void> => {
    await persist(clock, async (attempt) => {
      try {
        await connection.wire.request(reply, word, call);
      } catch (error) {
        if (!(error instanceof QueueError) || !error.retryable) throw error;
        const current = await messageAt(connection, { stream, sequence }, call);
        if (current === undefined || current.headers[MESSAGE_ID] !== headers[MESSAGE_ID]) return;
        if (attempt + 1 < DOUBTS) throw error;
        await removeMessage(connection, { stream, sequence }, call);
      }
    }, call);
  };

  return {
    id: assignmentOf(headers),
    backend: context.backend,
    // A copy: the library hands out a view of a whole network read.
    data: new Uint8Array(message.data),
    headers,
    sequence,
    storedAt,
    deliveries,
    ack: (call) => finish(ACK, call),
    terminate: (reason, call) =>
      finish(new TextEncoder().encode(`+TERM ${reason.replace(/[\r\n]+/g, " ")}`), call),
    nak(delayMs) {
      const delay = Math.max(0, Math.round(delayMs)) * 1_000_000;
      const word = delay > 0 ? `-NAK ${JSON.stringify({ delay })}` : "-NAK";
      connection.wire.publish(reply, new TextEncoder().encode(word));
    },
    inProgress() {
      connection.wire.publish(reply, IN_PROGRESS);
    },
  };
}

/** Which assignment a message is of; not checked: whoever reads the message does. */
export function assignmentOf(headers: Headers): AssignmentId {
  // A retry is published as `<id>:<n>`.
  return (headers[MESSAGE_ID] ?? "").replace(/:.*$/, "") as AssignmentId;
}

/** Removes a message by its sequence; absent is success. One try. */
export async function removeMessage(
  connection: NatsConnection,
  where: { readonly stream: string; readonly sequence: number },
  call: Call,
): Promise<void> {
  const answer = await askApi(connection, {
    path: `STREAM.MSG.DELETE.${where.stream}`,
    body: { seq: where.sequence, no_erase: true },
  }, call);
  if (answer.kind === "ok") return;
  const absent: number[] = [
    ERR_CODE.noMessageFound,
    ERR_CODE.sequenceNotFound,
    ERR_CODE.messageDeleteFailed,
  ];
  if (absent.includes(answer.errCode)) return;
  throw apiFailure(`Remove message ${where.sequence} of "${where.stream}"`, answer);
}

/**
 * Reads the subject of a delivery's acknowledgement:
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>`, in the
 * newer form with domain and account before the stream.
 */
function delivery(reply: string): { deliveries: number; sequence: number; storedAt: number } {
  const tokens = reply.split(".");
  const at = tokens.length === 9 ? 4 : 6;
  const [deliveries, sequence, , time] = tokens.slice(at, at + 4).map(Number);
  if (!deliveries || !sequence || !time) {
    throw new QueueError("refused", `Read delivery "${reply}": not one of JetStream`);
  }
  return { deliveries, sequence, storedAt: Math.floor(time / 1_000_000) };
}
