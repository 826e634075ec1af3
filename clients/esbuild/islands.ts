import { build, type BuildOptions } from "esbuild";
import { withEsbuild } from "./service.ts";

/** A file that browsers load, held in memory; its name has a hash of its content. */
export interface BuiltFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
}

/** Everything that was built. */
export interface Built {
  /** File name, e.g. `now-7Q3XK2AB.js`, to content. */
  readonly files: ReadonlyMap<string, BuiltFile>;
  /** Entry name to its file and the files it imports (to be preloaded). */
  readonly entries: ReadonlyMap<
    string,
    { readonly file: string; readonly imports: readonly string[] }
  >;
}

/** Options of {@link buildIslands}. */
export interface BuildIslandsOptions {
  /** Folder that the entries are relative to, an absolute path. */
  readonly root: string;
  /** Entry name to source file (`.tsx`, `.ts` or `.css`). */
  readonly entries: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/**
 * Builds the scripts and styles of the pages into memory with esbuild: split, minified, names with
 * content hashes. Runs esbuild's own child process and ends it. Rejects with esbuild's messages when
 * a source does not compile, or with the signal's reason.
 */
export async function buildIslands(options: BuildIslandsOptions): Promise<Built> {
  const settings = {
    absWorkingDir: options.root,
    entryPoints: { ...options.entries },
    outdir: "assets",
    bundle: true,
    splitting: true,
    format: "esm",
    target: ["es2022", "chrome123", "firefox120", "safari17.5"],
    minify: true,
    write: false,
    metafile: true,
    entryNames: "[name]-[hash]",
    chunkNames: "chunk-[hash]",
    logLevel: "silent",
    // Deno reads these from deno.json, esbuild does not.
    jsx: "automatic",
    jsxImportSource: "preact",
  } as const satisfies BuildOptions;
  return await withEsbuild(async () => {
    const { outputFiles, metafile } = await build(settings);
    const files = new Map(outputFiles.map(({ path, contents }): [string, BuiltFile] => {
      const name = baseName(path);
      return [name, { bytes: new Uint8Array(contents), type: typeOf(name) }];
    }));
    const bySource = new Map(
      Object.entries(options.entries).map(([name, source]) => [source, name]),
    );
    const entries = new Map(
      Object.entries(metafile.outputs).flatMap(([path, { entryPoint, imports }]) => {
        const name = bySource.get(entryPoint ?? "");
        if (name === undefined) return [];
        const wanted = imports.filter(({ kind }) => kind === "import-statement");
        return [[name, {
          file: baseName(path),
          imports: wanted.map((each) => baseName(each.path)),
        }]];
      }),
    );
    return { files, entries };
  }, options.signal);
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function typeOf(name: string): string {
  return name.endsWith(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8";
}
