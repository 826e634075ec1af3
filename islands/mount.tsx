import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type FunctionComponent, hydrate, render } from "preact";
import type { Dated } from "../components/dated.ts";
import { type Lang, LangContext } from "../components/lang.ts";
import { type Live, LiveContext } from "../components/live.ts";
import { NowContext } from "../components/now.ts";
import { Shell } from "../components/Shell.tsx";
import { createTickingClock } from "./clock.ts";
import { type Visitor, VisitorContext } from "../components/visitor.ts";
import { Keyboard } from "./Keyboard.tsx";
import { readPage } from "./read_page.ts";
import { createRefetch } from "./refetch.ts";
import { type Message, openStream } from "./stream.ts";

/** What the server wrote into the page. */
interface Embedded<D> {
  readonly data: D;
  readonly lang: Lang;
  readonly version: string;
  readonly backends: readonly string[];
  readonly path: string;
  readonly visitor: Visitor;
}

/** How an island follows the stream. */
export interface LivePage<D extends Dated> {
  readonly component: FunctionComponent<{ data: D }>;
  /** Events it listens to, beside `snapshot`. */
  readonly events: readonly string[];
  /** The data after some messages; `refetch` when it must be read again from the server. */
  apply(data: D, messages: readonly Message[]): D | "refetch";
  /** Called once, before anything is drawn. */
  start?(page: { readonly data: Signal<D>; readonly signal: AbortSignal }): void;
  /** The data was read from the server anew. */
  onFresh?(): void;
}

/**
 * Takes over the server's HTML and keeps it fresh in place. Everything works without it; it ends
 * when the page is left.
 */
export function mount<D extends Dated>(page: LivePage<D>): void {
  const root = document.getElementById("app");
  const text = document.getElementById("page-data")?.textContent;
  if (root === null || text === null || text === undefined) return;
  // What our own server wrote into this page.
  const embedded = JSON.parse(text) as Embedded<D>;
  const stop = new AbortController();
  const data = signal(embedded.data);
  const live = signal<Live>({ kind: "static" });
  const clock = createTickingClock(embedded.data.at, stop.signal);
  const refetch = createRefetch<D>({
    read: () => readPage(location.pathname + location.search, stop.signal),
    take(fresh) {
      clock.sync(fresh.at);
      data.value = fresh;
      page.onFresh?.();
    },
    later: (run, ms) => void setTimeout(run, ms),
    signal: stop.signal,
  });
  page.start?.({ data, signal: stop.signal });

  hydrate(
    <App embedded={embedded} page={page} data={data} live={live} now={clock.now} />,
    root,
  );
  const keyboard = document.getElementById("keyboard");
  if (keyboard !== null) render(<Keyboard lang={embedded.lang} />, keyboard);

  openStream({
    lastEventId: embedded.data.lastEventId,
    events: page.events,
    signal: stop.signal,
    onState(state) {
      live.value = state;
    },
    onMessages(messages) {
      const newest = messages.at(-1);
      if (newest !== undefined) clock.sync(newest.at);
      const next = messages.some(({ event }) => event === "snapshot")
        ? "refetch"
        : page.apply(data.value, messages);
      if (next === "refetch") refetch();
      else data.value = next;
    },
  });
  addEventListener("pagehide", (event) => {
    // A page that may come back by the back button keeps its state; the stream pauses by itself.
    if (!event.persisted) stop.abort();
  });
}

function App<D extends Dated>({ embedded, page, data, live, now }: {
  embedded: Embedded<D>;
  page: LivePage<D>;
  data: ReadonlySignal<D>;
  live: ReadonlySignal<Live>;
  now: ReadonlySignal<number>;
}) {
  const Content = page.component;
  return (
    <LangContext.Provider value={embedded.lang}>
      <NowContext.Provider value={now}>
        <LiveContext.Provider value={live.value}>
          <VisitorContext.Provider value={embedded.visitor}>
            <Shell
              at={data.value.at}
              version={embedded.version}
              backends={embedded.backends}
              path={embedded.path}
            >
              <Content data={data.value} />
            </Shell>
          </VisitorContext.Provider>
        </LiveContext.Provider>
      </NowContext.Provider>
    </LangContext.Provider>
  );
}
