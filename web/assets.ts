import { buildIslands, type Built } from "../clients/esbuild/islands.ts";
import { type IslandName, ISLANDS } from "../components/islands.ts";

/** Scripts, styles and images of the pages, in memory. */
export interface Assets {
  /** URL of the style sheet; null when there is none. */
  readonly style: string | null;
  /** URLs of an island's script and of what it imports; null when there is none. */
  script(island: IslandName): { readonly src: string; readonly preload: readonly string[] } | null;
  /** The response to `/assets/<name>`; undefined if there is no such file. */
  respond(name: string): Response | undefined;
}

/** URL of the icon; its name changes with its content. */
export const ICON = "/assets/icon-1.svg";

const ICON_SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">
<g fill="#2f6fd0"><rect x="1" y="1" width="8" height="8" rx="1.5"/><rect x="11" y="1" width="8" height="8" rx="1.5" opacity=".55"/>
<rect x="1" y="11" width="8" height="8" rx="1.5" opacity=".55"/></g>
<rect x="11.75" y="11.75" width="6.5" height="6.5" rx="1" fill="none" stroke="#2f6fd0" stroke-width="1.5"/></svg>`;

/** Builds all assets. Rejects when a source does not compile, or with the signal's reason. */
export async function buildAssets(signal: AbortSignal): Promise<Assets> {
  const root = decodeURIComponent(new URL("../", import.meta.url).pathname);
  return assetsOf(
    await buildIslands({
      root,
      signal,
      entries: {
        ...Object.fromEntries(ISLANDS.map((name) => [name, `islands/${name}.tsx`])),
        style: "components/style/main.css",
      },
    }),
  );
}

/** Serves what was built; names have hashes, so that browsers may keep them for ever. */
function assetsOf(built: Built): Assets {
  const url = (file: string) => `/assets/${file}`;
  const style = built.entries.get("style");
  return {
    style: style === undefined ? null : url(style.file),
    script(island) {
      const entry = built.entries.get(island);
      return entry === undefined ? null : { src: url(entry.file), preload: entry.imports.map(url) };
    },
    respond(name) {
      const file = url(name) === ICON
        ? { bytes: new TextEncoder().encode(ICON_SVG), type: "image/svg+xml" }
        : built.files.get(name);
      if (file === undefined) return undefined;
      return new Response(file.bytes, {
        headers: {
          "content-type": file.type,
          "cache-control": "public, max-age=31536000, immutable",
        },
      });
    },
  };
}

/** No script and no style: pages are still complete. */
export const NO_ASSETS: Assets = assetsOf({ files: new Map(), entries: new Map() });
