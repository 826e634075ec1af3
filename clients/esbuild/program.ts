import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { withEsbuild } from "./service.ts";

/** CommonJS packages call `require`, and some look for their own folder. */
const PRELUDE = [
  `import { createRequire as __createRequire } from "node:module";`,
  `import { Buffer } from "node:buffer";`,
  `import process from "node:process";`,
  `const require = __createRequire("file:///program.mjs");`,
  `const __filename = "/program.mjs", __dirname = "/", global = globalThis;`,
].join("\n");

/**
 * Bundles a program and everything it imports into one ESM text that plain `deno run` takes, without
 * node_modules, npm cache or configuration. `entry` is a path or a `file:` URL. Rejects with
 * esbuild's error when an import cannot be resolved, or the signal's reason.
 */
export async function bundleProgram(
  entry: string | URL,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<string> {
  const result = await withEsbuild(() =>
    build({
      entryPoints: [entry instanceof URL ? fileURLToPath(entry) : entry],
      bundle: true,
      write: false,
      format: "esm",
      platform: "node",
      target: "es2024",
      minify: true,
      legalComments: "none",
      charset: "utf8",
      banner: { js: PRELUDE },
      logLevel: "silent",
    }), signal);
  const [file] = result.outputFiles;
  if (file === undefined) throw new Error(`Bundle "${entry}": esbuild wrote no file`);
  return file.text;
}
