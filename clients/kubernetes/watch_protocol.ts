import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import { isObject, objectOrEmpty, ownProperty } from "../../lib/json_object.ts";
import { failureOfStatus } from "./answer.ts";
import { createDeadline } from "./deadline.ts";
import { createLineSplitter, LineTooLong } from "./lines.ts";
import { late, malformed, type OpenAnswer, Refused, type Transport } from "./transport.ts";

/** A collection of objects at the API server. */
export interface Collection {
  /** Its path, e.g. `/api/v1/namespaces/x/pods`. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects per page of the list; 500 by default. */
  readonly pageSize?: number;
}

/** Any object of the API, as plain JSON. */
export type PlainObject = Readonly<Record<string, unknown>>;

/** One event of a watch; `version` is the place in the server's history after it. */
export type RawEvent =
  | { readonly kind: "changed" | "gone"; readonly object: PlainObject; readonly version: string }
  | { readonly kind: "bookmark"; readonly version: string };

/** Why a watch can only go on from a new list. */
export class Lost extends Error {
  override readonly name = "Lost";
  /** `expired`: the server has forgotten the place (410). `nonsense`: it cannot be trusted. */
  readonly kind: "expired" | "nonsense";

  constructor(kind: Lost["kind"], why: string) {
    super(why);
    this.kind = kind;
  }
}

/** What listing and watching work with. Both reject with `Refused`, `Lost` or the signal's reason. */
export interface Exchange {
  readonly transport: Pick<Transport, "exchange" | "open">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Bookmarks come every 60 s on a quiet watch (measured): so much silence is a dead connection. */
const SILENCE_MS = 90_000;
const HEAD_MS = 15_000;
const PAGE_MS = 30_000;
/** The server ends a watch after this time and up to twice as much, as in client-go. */
const WATCH_SECONDS = 300;
/** An object in etcd is at most 1.5 MiB; as JSON it may be several times that. */
const MAX_LINE_BYTES = 8 * 2 ** 20;
const MAX_ITEMS = 100_000;
const DEFAULT_PAGE_SIZE = 500;

/** Everything in the collection, of one moment, page by page, and that moment's version. */
export async function listAll(
  collection: Collection,
  { transport, clock, signal }: Exchange,
): Promise<{ readonly objects: readonly PlainObject[]; readonly version: string }> {
  const objects: PlainObject[] = [];
  let continuation = "";
  while (true) {
    const query = selectors(collection);
    query.set("limit", String(collection.pageSize ?? DEFAULT_PAGE_SIZE));
    if (continuation !== "") query.set("continue", continuation);
    const page = await onePage(`${collection.path}?${query}`, { transport, clock, signal });
    const metadata = objectOrEmpty(page.metadata);
    const version = ownProperty(metadata, "resourceVersion");
    if (!Array.isArray(page.items) || typeof version !== "string" || version === "") {
      throw new Refused(malformed("a list without items or version"));
    }
    for (const item of page.items) if (isObject(item)) objects.push(item);
    if (objects.length > MAX_ITEMS) {
      throw new Refused(malformed(`a list of more than ${MAX_ITEMS} objects`));
    }
    const next = metadata.continue;
    if (typeof next !== "string" || next === "") return { objects, version };
    continuation = next;
  }
}

async function onePage(
  url: string,
  { transport, clock, signal }: Exchange,
): Promise<PlainObject> {
  using deadline = createDeadline(clock, PAGE_MS);
  try {
    const stop = AbortSignal.any([signal, deadline.signal]);
    const { text } = await transport.exchange({ method: "GET", url }, stop);
    return objectOrEmpty(JSON.parse(text));
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.signal.aborted) throw new Refused(late(PAGE_MS), { cause: error });
    // The pages that were still to come are of a moment that the server has forgotten.
    if (isExpired(error)) throw new Lost("expired", "the list's next page has expired");
    if (error instanceof SyntaxError) throw new Refused(malformed("broken JSON"), { cause: error });
    throw error;
  }
}

/** An open watch; dispose it to end it. */
export interface OpenWatch extends AsyncDisposable {
  /** Ends when the server ends the watch; a line that is cut off then is left out. */
  readonly events: AsyncGenerator<RawEvent, void>;
}

/** Opens a watch from `version` on; `random` spreads the server's ends of many watches. */
export async function openWatch(
  collection: Collection,
  version: string,
  { transport, clock, signal, random }: Exchange & { readonly random: () => number },
): Promise<OpenWatch> {
  const query = selectors(collection);
  query.set("watch", "true");
  query.set("resourceVersion", version);
  query.set("allowWatchBookmarks", "true");
  query.set("timeoutSeconds", String(Math.round(WATCH_SECONDS * (1 + random()))));
  try {
    const answer = await transport.open({
      method: "GET",
      url: `${collection.path}?${query}`,
      // Compressed watches come as one gzip member per flush, of which fetch reads only the first.
      headers: { "accept-encoding": "identity" },
    }, { signal, headMs: HEAD_MS });
    return {
      events: eventsOf(answer, clock),
      [Symbol.asyncDispose]: () => answer[Symbol.asyncDispose](),
    };
  } catch (error) {
    if (isExpired(error)) throw new Lost("expired", "the watch's place has expired");
    throw error;
  }
}

async function* eventsOf(answer: OpenAnswer, clock: Clock): AsyncGenerator<RawEvent, void> {
  const lines = createLineSplitter(MAX_LINE_BYTES);
  try {
    while (true) {
      const piece = await heard(answer.read(), answer, clock);
      if (piece === null) return;
      for (const line of lines.push(piece)) if (line.trim() !== "") yield eventOf(line);
    }
  } catch (error) {
    throw error instanceof LineTooLong ? new Lost("nonsense", error.message) : error;
  }
}

async function heard<T>(reading: Promise<T>, answer: OpenAnswer, clock: Clock): Promise<T> {
  using silence = clock.timeout(SILENCE_MS);
  try {
    return await abortable(reading, silence.signal);
  } catch (error) {
    if (!silence.signal.aborted) throw error;
    answer.suspect();
    throw new Refused({ ...late(SILENCE_MS), detail: `not a word for ${SILENCE_MS / 1000} s` });
  }
}

function eventOf(line: string): RawEvent {
  let event: PlainObject;
  try {
    event = objectOrEmpty(JSON.parse(line));
  } catch {
    throw new Lost("nonsense", "a line of the watch is no JSON");
  }
  const { type } = event;
  const object = objectOrEmpty(event.object);
  if (type === "ERROR") throw errorEvent(object);
  const version = objectOrEmpty(object.metadata).resourceVersion;
  if (typeof version !== "string" || version === "") {
    throw new Lost("nonsense", "an event of the watch has no version");
  }
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return { kind: "changed", object, version };
    case "DELETED":
      return { kind: "gone", object, version };
    case "BOOKMARK":
      return { kind: "bookmark", version };
    default:
      throw new Lost("nonsense", "an event of the watch has an unknown type");
  }
}

/** After a restart of the server, 410 comes with status 200, as the first event (measured). */
function errorEvent(object: PlainObject): Error {
  const failure = failureOfStatus(object);
  return failure.status === 410 || failure.reason === "Expired" || failure.reason === "Gone"
    ? new Lost("expired", failure.detail)
    : new Refused({ ...failure, reason: failure.reason || "Unknown" });
}

function isExpired(error: unknown): boolean {
  return error instanceof Refused && error.failure.status === 410;
}

function selectors({ labelSelector, fieldSelector }: Collection): URLSearchParams {
  const query = new URLSearchParams();
  if (labelSelector !== undefined) query.set("labelSelector", labelSelector);
  if (fieldSelector !== undefined) query.set("fieldSelector", fieldSelector);
  return query;
}
