import { join } from "node:path";

const PACKAGE = "schemathesis==4.32.5";
const INSTALL_MS = 300_000;
const RUN_MS = 300_000;
/** What an answer must be: none of 5xx, and none that the document does not describe. */
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
].join(",");

/** One run over the whole document. */
export interface FuzzRun {
  /** The dashboard's address, without a trailing slash. */
  readonly url: string;
  /** The OpenAPI document, as JSON. */
  readonly document: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly seed: number;
  /** Made-up requests per operation and phase. */
  readonly examples: number;
}

/** Plays requests that are made from the OpenAPI document. */
export interface Schemathesis {
  /** Resolves to whether every answer was right, with what was printed. Rejects when it cannot run. */
  run(options: FuzzRun): Promise<{ readonly ok: boolean; readonly text: string }>;
}

/**
 * Finds schemathesis of this version in the user's cache, or installs it there by pip. Rejects with
 * what pip said.
 */
export async function findSchemathesis(): Promise<Schemathesis> {
  const cache = Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "/root", ".cache");
  const folder = join(cache, "gdr-tests", PACKAGE.replace("==", "-"));
  if (!await isThere(folder)) await install(folder);
  return {
    async run({ url, document, headers, seed, examples }) {
      const args = [
        ...["-m", "schemathesis.cli", "--no-color", "run", "openapi.json", "--url", url],
        ...["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--continue-on-failure"],
        // The stream of events ends when its reader does.
        ...["--exclude-path", "/api/v1/events", "--request-timeout", "10"],
        ...["--max-examples", String(examples), "--seed", String(seed), "--workers", "1"],
        ...["--generation-database", "none", "--warnings", "off"],
        ...Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]),
      ];
      const home = await Deno.makeTempDir({ prefix: "gdr-fuzz-" });
      try {
        await Deno.writeTextFile(join(home, "openapi.json"), document);
        const { code, text } = await python(args, { cwd: home, path: folder, ms: RUN_MS });
        if (code !== 0 && code !== 1) {
          throw new Error(`Run ${PACKAGE}: exit code ${code}\n${text.slice(-3_000)}`);
        }
        return { ok: code === 0, text };
      } finally {
        await Deno.remove(home, { recursive: true });
      }
    },
  };
}

async function isThere(folder: string): Promise<boolean> {
  const found = await Deno.stat(join(folder, "schemathesis")).catch(() => undefined);
  return found?.isDirectory === true;
}

/** Into a draft first, so that a broken installation is never taken for a whole one. */
async function install(folder: string): Promise<void> {
  const draft = `${folder}.${crypto.randomUUID()}`;
  await Deno.mkdir(draft, { recursive: true });
  const { code, text } = await python(
    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", draft, PACKAGE],
    { cwd: draft, path: "", ms: INSTALL_MS },
  );
  if (code !== 0) {
    await Deno.remove(draft, { recursive: true });
    throw new Error(`Install ${PACKAGE} by pip: exit code ${code}: ${text.slice(-1_000)}`);
  }
  // Another run may have been faster.
  await Deno.rename(draft, folder).catch(() => Deno.remove(draft, { recursive: true }));
}

async function python(
  args: readonly string[],
  { cwd, path, ms }: { readonly cwd: string; readonly path: string; readonly ms: number },
): Promise<{ readonly code: number; readonly text: string }> {
  const { code, stdout, stderr } = await new Deno.Command("python3", {
    args: [...args],
    cwd,
    env: { PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(ms),
  }).output();
  const decoder = new TextDecoder();
  return { code, text: decoder.decode(stdout) + decoder.decode(stderr) };
}
