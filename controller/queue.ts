import type { AssignmentId, BackendName } from "./model/ids.ts";
import type { Call } from "./backend.ts";

/** A message in hand. */
export interface StoredMessage {
  readonly id: AssignmentId;
  readonly backend: BackendName;
  /** The envelope, sealed. */
  readonly data: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** JetStream's stream sequence: the order of admission. */
  readonly sequence: number;
  /** When JetStream stored it, milliseconds since the epoch. */
  readonly storedAt: number;
  /** For people only; never a decision (field report F66). */
  readonly deliveries: number;
  /** DoubleAck: resolves when the server has confirmed; retried for ever until then or until aborted. */
  ack(call: Call): Promise<void>;
  /** Gives it back, to be delivered again after `delayMs`. Best effort: the ack wait does the same. */
  nak(delayMs: number): void;
  /** Removes it for good with a reason; retried like {@link ack}. */
  terminate(reason: string, call: Call): Promise<void>;
  /** Tells the server that it is being worked on. */
  inProgress(): void;
}

/** A stored message as listed, without taking it. */
export interface PendingMessage {
  readonly id: AssignmentId;
  readonly backend: BackendName;
  readonly sequence: number;
  readonly storedAt: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Uint8Array;
}

/** How many messages may be pulled now, and when that changes. */
export interface Demand {
  /** Messages that may be in hand beyond those already yielded and not yet reported taken. */
  free(): number;
  /** Resolves at the next change of {@link free}; rejects when aborted. */
  changed(signal: AbortSignal): Promise<void>;
}

/** What `consumer.info` says, for people. */
export interface QueueCounts {
  readonly numPending: number;
  readonly numAckPending: number;
}

/**
 * The JetStream work queue. Methods wait and retry while the server is away, until aborted.
 * Throws {@link QueueError}.
 */
export interface AssignmentQueue {
  /** The server's `max_payload`, bytes. */
  readonly maxPayload: number;
  /** Stores a message; resolves only when JetStream has confirmed. One try: the caller retries. */
  publish(
    message: {
      readonly id: AssignmentId;
      readonly backend: BackendName;
      readonly data: Uint8Array;
      readonly headers: Readonly<Record<string, string>>;
      /** Stored once more, beside an earlier message of this id: any number that was not used before. */
      readonly again?: number;
    },
    call: Call,
  ): Promise<{ readonly sequence: number; readonly duplicate: boolean }>;
  /**
   * Messages of a backend in stream order, never more at a time than `demand.free()` allowed when
   * they were asked for. Survives reconnects and a deleted consumer; ends when aborted.
   */
  consume(backend: BackendName, demand: Demand, call: Call): AsyncIterable<StoredMessage>;
  /** Deletes and makes the consumer again, so that what an earlier leader held comes at once. */
  resetConsumer(backend: BackendName, call: Call): Promise<void>;
  /** Numbers of the backend's consumer. */
  counts(backend: BackendName, call: Call): Promise<QueueCounts>;
  /** Stored messages of a backend from `fromSequence` on, at most `limit`, oldest first; taken or not. */
  list(
    backend: BackendName,
    page: { readonly fromSequence: number; readonly limit: number },
    call: Call,
  ): Promise<PendingMessage[]>;
  /** Removes one message by its sequence, in hand or not. Absent is success. */
  remove(sequence: number, call: Call): Promise<void>;
}

/** Codes of {@link QueueError}. */
export type QueueErrorCode =
  | "unavailable"
  | "timeout"
  | "too_large"
  | "refused"
  | "differs"
  | "conflict"
  | "full";

/** NATS said no, or did not answer. */
export class QueueError extends Error {
  override readonly name = "QueueError";
  /** `conflict` = a compare-and-set lost; `differs` = an existing stream is not as needed. */
  readonly code: QueueErrorCode;
  /** False when trying again cannot help. */
  readonly retryable: boolean;

  /** `message`: action first, no full stop. */
  constructor(
    code: QueueErrorCode,
    message: string,
    options: { retryable?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? (code === "unavailable" || code === "timeout");
  }
}
