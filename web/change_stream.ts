import type { Views } from "../controller/views/views.ts";
import type { Clock } from "../lib/clock.ts";
import { createHub } from "./hub.ts";

/** How often open pages are told the whole status. */
const STATUS_MS = 5_000;

/** The event stream of `/api/v1/events`: every change of the views, and the status every 5 s. */
export interface ChangeStream extends AsyncDisposable {
  /** Id of the newest event; read it before the data that a page shows. */
  lastEventId(): string;
  /** Opens a stream that goes on after `lastEventId`; undefined when no more viewers are taken. */
  open(lastEventId: string | null): ReadableStream<Uint8Array> | undefined;
}

/** Makes a {@link ChangeStream}; it follows the views until it is disposed of, which ends every stream. */
export function createChangeStream(
  { views, clock }: { readonly views: Views; readonly clock: Clock },
): ChangeStream {
  const hub = createHub({ clock }, { epoch: clock.now() });
  const stop = new AbortController();
  const now = () => new Date(clock.now()).toISOString();
  const status = () => ({ at: now(), old: null, new: views.status() });

  views.subscribe(({ kind, old, new: changed }) => {
    hub.publish(kind, { at: now(), old, new: changed });
  }, stop.signal);
  // Sources have no events of their own, and their ages must not grow while they are well.
  const retelling = (async () => {
    while (!stop.signal.aborted) {
      await clock.sleep(STATUS_MS, stop.signal).catch(() => {});
      if (hub.clients > 0) hub.sendTransient("status", status());
    }
  })();

  return {
    lastEventId: () => hub.lastId,
    open: (lastEventId) => hub.connect(lastEventId, status),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await hub[Symbol.asyncDispose]();
      await retelling;
    },
  };
}
