import type { AuditEntry, AuditLog, StoredAudit } from "../../controller/actions/audit.ts";
import type { Call } from "../../controller/backend.ts";
import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { persist, store } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { decodeJson, encodeJson, numberAt, textAt, textOf } from "./json.ts";
import { MESSAGE_ID } from "./message.ts";
import { readStored, type Stored } from "./stored.ts";
import { EVENTS_BASE, EVENTS_STREAM } from "./streams.ts";

/** Fewer tokens than a job's events have, so that none is taken for the other. */
const SUBJECT = `${EVENTS_BASE}.audit`;
const BUFFER = 1_000;
const MOST_READ = 10_000;
const CLOSE_MS = 2_000;

/** The {@link AuditLog} of a connection; dispose it to store what is left, for at most two seconds. */
export function createAuditLog(
  connection: NatsConnection,
  deps: { readonly clock: Clock; readonly logger: Logger; readonly bufferSize?: number },
): AuditLog & AsyncDisposable & { flush(signal: AbortSignal): Promise<void> } {
  const { clock } = deps;
  const logger = deps.logger.child({ component: "audit" });
  const closing = new AbortController();
  const buffer: AuditEntry[] = [];
  let wake = Promise.withResolvers<void>();
  let idle = Promise.withResolvers<void>();
  idle.resolve();

  const send = (entry: AuditEntry) =>
    store(connection, {
      subject: SUBJECT,
      data: encodeJson(entry),
      headers: { [MESSAGE_ID]: `audit-${entry.id}` },
      action: "Store audit",
    }, { signal: closing.signal });

  const run = async () => {
    const { signal } = closing;
    while (!signal.aborted) {
      const [entry] = buffer;
      if (entry === undefined) {
        idle.resolve();
        wake = Promise.withResolvers();
        await abortable(wake.promise, signal);
        continue;
      }
      try {
        await persist(clock, () => send(entry), { signal });
      } catch (error) {
        if (signal.aborted) return;
        // It can never be stored; those behind it can.
        logger.error("an audit entry is not stored", { id: entry.id, error });
      }
      if (buffer[0] === entry) buffer.shift();
    }
  };
  const running = run().catch(() => {}); // Only the end of waiting.

  const flush = async (signal: AbortSignal) => {
    if (buffer.length > 0) await abortable(idle.promise, signal);
  };

  return {
    append(entry) {
      if (closing.signal.aborted) return;
      if (buffer.length >= (deps.bufferSize ?? BUFFER)) {
        const lost = buffer.shift();
        // The log has had it when it happened.
        logger.error("an audit entry is dropped", { id: lost?.id, action: lost?.action });
      }
      if (buffer.length === 0) idle = Promise.withResolvers();
      buffer.push(entry);
      wake.resolve();
    },
    read: createAuditReader(connection, deps).read,
    flush,
    async [Symbol.asyncDispose]() {
      using timeout = clock.timeout(CLOSE_MS);
      await flush(timeout.signal).catch(() => {});
      closing.abort(new DOMException("Closed", "AbortError"));
      await running;
    },
  };
}

/** Reads what the leader has stored, for whoever does not lead. */
export function createAuditReader(
  connection: NatsConnection,
  { clock }: { readonly clock: Clock },
): Pick<AuditLog, "read"> {
  const readAll = async (call: Call) => {
    const where = { stream: EVENTS_STREAM, subject: SUBJECT, limit: MOST_READ };
    let newest: Stored[] = [];
    for (let fromSequence = 1;;) {
      const page = await readStored(connection, { ...where, fromSequence }, { ...call, clock });
      newest = [...newest, ...page].slice(-MOST_READ);
      const last = page.at(-1);
      if (page.length < MOST_READ || last === undefined) break;
      fromSequence = last.sequence + 1;
    }
    return newest.map(auditOf).filter((each) => each !== undefined);
  };
  return { read: (call) => persist(clock, () => readAll(call), call) };
}

function auditOf({ sequence, data }: Stored): StoredAudit | undefined {
  const json = decodeJson(data);
  const { result } = json;
  if (result !== "done" && result !== "refused" && result !== "failed") return undefined;
  const entry: AuditEntry = {
    id: textAt(json, "id"),
    at: numberAt(json, "at"),
    actor: textAt(json, "actor"),
    role: textAt(json, "role"),
    action: textAt(json, "action"),
    target: textAt(json, "target"),
    before: json.before ?? null,
    after: json.after ?? null,
    note: textAt(json, "note"),
    requestId: textAt(json, "requestId"),
    result,
    error: textOf(json.error),
  };
  return { seq: sequence, entry };
}
