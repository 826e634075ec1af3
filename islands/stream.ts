import type { Live } from "../components/live.ts";
import { onAbort } from "../lib/abortable.ts";
import { isObject } from "../lib/json_object.ts";

/** One message of the event stream, parsed. */
export interface Message {
  readonly event: string;
  readonly at: string;
  readonly old: unknown;
  readonly new: unknown;
}

/** What the stream needs of the browser; tests give their own. */
export interface StreamHost {
  open(url: string): Pick<EventSource, "close"> & EventTarget;
  readonly document: EventTarget & { readonly hidden: boolean };
  /** Milliseconds since the epoch. */
  now(): number;
  /** 0 to 1. */
  random(): number;
  /** Runs it after `ms`; the function returned calls it off. */
  later(run: () => void, ms: number): () => void;
}

/** Options of {@link openStream}. */
export interface StreamOptions {
  /** Id of the newest event that the page knows. */
  readonly lastEventId: string;
  /** Names to listen to, beside `snapshot`. */
  readonly events: readonly string[];
  onMessages(messages: readonly Message[]): void;
  onState(state: Live): void;
  readonly signal: AbortSignal;
  readonly host?: StreamHost;
}

/** At most one update per row in this time: what comes meanwhile is handed over together. */
const BATCH_MS = 250;
/** The server says something every 5 s; after this long without a word the connection is dead. */
const SILENT_MS = 20_000;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 30_000;

/**
 * One event stream per tab.
 *
 * ```
 * connecting --open--> live --error--> lost --1..30 s with jitter--> connecting
 *      |                 |                |
 *      +------ tab hidden: paused, closed; shown again: connecting with the last id ------+
 * ```
 * A stream that says nothing for 20 s counts as an error too. A browser gives up for good on an HTTP
 * error, so every error closes the stream and this code opens the next one itself. Ends when the signal
 * aborts.
 */
export function openStream(options: StreamOptions): void {
  const { signal, onMessages, onState, host = browserHost() } = options;
  let last = options.lastEventId;
  let source: ReturnType<StreamHost["open"]> | undefined;
  let cancelRetry: (() => void) | undefined;
  let cancelWatch: (() => void) | undefined;
  let cancelFlush: (() => void) | undefined;
  let failures = 0;
  let lostSince: number | undefined;
  let batch: Message[] = [];

  const hand = () => {
    cancelFlush = undefined;
    const messages = batch;
    batch = [];
    onMessages(messages);
  };
  const watch = () => {
    cancelWatch?.();
    cancelWatch = host.later(lose, SILENT_MS);
  };
  const take = (message: Event) => {
    watch();
    if (!(message instanceof MessageEvent)) return;
    last = message.lastEventId === "" ? last : message.lastEventId;
    const data = parse(message);
    if (data === undefined) return;
    batch.push(data);
    cancelFlush ??= host.later(hand, BATCH_MS);
  };
  const close = () => {
    source?.close();
    source = undefined;
    cancelRetry?.();
    cancelRetry = undefined;
    cancelWatch?.();
    cancelWatch = undefined;
  };
  const lose = () => {
    close();
    lostSince ??= host.now();
    onState({ kind: "lost", since: lostSince });
    const ms = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures++, 5));
    cancelRetry = host.later(open, FIRST_RETRY_MS + (ms - FIRST_RETRY_MS) * host.random());
  };
  const open = () => {
    close();
    if (signal.aborted || host.document.hidden) return;
    if (lostSince === undefined) onState({ kind: "connecting" });
    const opened = host.open(`/api/v1/events?last=${encodeURIComponent(last)}`);
    source = opened;
    // Also while it is being made: a server that takes it and never answers is no error to a browser.
    watch();
    opened.addEventListener("open", () => {
      failures = 0;
      lostSince = undefined;
      watch();
      onState({ kind: "live" });
    });
    opened.addEventListener("error", lose);
    for (const name of ["snapshot", ...options.events]) opened.addEventListener(name, take);
  };
  const onVisibility = () => {
    if (!host.document.hidden) return open();
    close();
    lostSince = undefined;
    onState({ kind: "paused" });
  };

  host.document.addEventListener("visibilitychange", onVisibility, { signal });
  onAbort(signal, () => {
    close();
    cancelFlush?.();
  });
  open();
}

/** A message of ours; undefined for anything that is not. */
function parse(message: MessageEvent): Message | undefined {
  try {
    const data: unknown = JSON.parse(message.data);
    if (!isObject(data) || typeof data.at !== "string") return undefined;
    return { event: message.type, at: data.at, old: data.old ?? null, new: data.new ?? null };
  } catch {
    // Half a message of a connection that broke: the next one, or the next snapshot, makes it good.
    return undefined;
  }
}

function browserHost(): StreamHost {
  return {
    open: (url) => new EventSource(url),
    document,
    now: () => Date.now(),
    random: () => Math.random(),
    later(run, ms) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
}
