import { signal } from "@preact/signals";
import type { ComponentChild } from "preact";
import { renderToString } from "preact-render-to-string";
import { type Lang, LangContext } from "../components/lang.ts";
import { NowContext } from "../components/now.ts";
import { type Visitor, VisitorContext } from "../components/visitor.ts";
import { Shell } from "../components/Shell.tsx";
import { ICON } from "./assets.ts";

/** What a whole HTML document is made of. */
export interface DocumentOptions {
  readonly lang: Lang;
  readonly title: string;
  /** Draws the content inside the shell. */
  readonly body: () => ComponentChild;
  /** Milliseconds since the epoch: what ages are counted to. */
  readonly now: number;
  readonly version: string;
  /** Names of the backends that run here. */
  readonly backends: readonly string[];
  readonly visitor: Visitor;
  /** Path and query of the page. */
  readonly path: string;
  readonly nonce: string;
  readonly style: string | null;
  readonly script: { readonly src: string; readonly preload: readonly string[] } | null;
  /** What the island gets; it must draw the same as `body`. */
  readonly data: unknown;
}

/** The HTML of a page, complete without script. */
export function renderDocument(options: DocumentOptions): string {
  const { lang, title, nonce, style, script, now, version, backends, path, visitor } = options;
  const app = renderToString(
    <LangContext.Provider value={lang}>
      <NowContext.Provider value={signal(now)}>
        <VisitorContext.Provider value={visitor}>
          <Shell
            at={new Date(now).toISOString()}
            version={version}
            backends={backends}
            path={path}
          >
            {options.body()}
          </Shell>
        </VisitorContext.Provider>
      </NowContext.Provider>
    </LangContext.Provider>,
  );
  const head = renderToString(
    <head>
      <meta charSet="utf-8" />
      <title>{`${title} · ${lang.dict.product}`}</title>
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <link rel="icon" href={ICON} type="image/svg+xml" />
      {style === null ? null : <link rel="stylesheet" href={style} />}
      {script?.preload.map((href) => (
        <link key={href} rel="modulepreload" href={href} nonce={nonce} />
      ))}
      {script === null ? null : <script type="module" src={script.src} nonce={nonce} />}
    </head>,
  );
  const data = script === null
    ? ""
    : dataBlock({ data: options.data, lang, version, backends, path, visitor });
  return `<!DOCTYPE html><html lang="${lang.locale}">${head}<body><div id="app">${app}</div>` +
    `${data}</body></html>`;
}

/** JSON that a browser never runs; `<` is escaped so that no string can end the block. */
function dataBlock(value: unknown): string {
  const json = JSON.stringify(value).replaceAll("<", "\\u003c");
  return `<script type="application/json" id="page-data">${json}</script>`;
}
