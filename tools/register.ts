import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { register } from "../clients/gitea/register.ts";
import { GiteaError } from "../controller/gitea.ts";
import { Secret } from "../lib/secret.ts";

/** What the tool touches. */
export interface RegisterToolOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told what happened, lines for people. */
  readonly say: (text: string) => void;
  readonly signal: AbortSignal;
  readonly fetch?: typeof globalThis.fetch;
}

const USAGE = `Makes the one permanent registration of a controller at Gitea.

  deno task register --url URL --out FILE [--token TOKEN] [--name NAME]

  --url    Gitea's ROOT_URL (default: GITEA_URL)
  --token  a registration token, from Gitea's page of runners of the site, an organisation or a
           repository. Better not on the command line: REGISTRATION_TOKEN or REGISTRATION_TOKEN_FILE
  --name   what Gitea shows (default: gitea-dynamic-runner)
  --out    new file, mode 0600, with GITEA_RUNNER_UUID and GITEA_RUNNER_TOKEN. Each also gets a file
           of its own beside it, for GITEA_RUNNER_UUID_FILE and GITEA_RUNNER_TOKEN_FILE
`;

/** A wrong command line; nothing was done. */
class UsageError extends Error {
  override readonly name = "UsageError";
}

/**
 * Registers and writes the files; resolves to the exit code: 0 done, 1 Gitea or the disk refused,
 * 2 wrong usage. The files are made before the registration, so that none is ever replaced and no
 * runner is made that nobody can use; they are removed again when Gitea refuses.
 */
export async function runRegister(
  args: readonly string[],
  options: RegisterToolOptions,
): Promise<number> {
  const { say, signal } = options;
  try {
    const request = await readRequest(args, options.env);
    if (request === "help") {
      say(USAGE);
      return 0;
    }
    await using files = await reserve(request.out);
    const { name, token, uuid } = await register({
      url: request.url,
      registrationToken: request.token,
      name: request.name,
      labels: [],
      version: "gitea-dynamic-runner",
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    }, { signal });
    await files.write(uuid, token);
    say(nextSteps(request.url, request.out, name));
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      say(`${error.message}\n\n${USAGE}`);
      return 2;
    }
    if (error instanceof GiteaError) say(`${error.code}: ${error.message}\n`);
    else say(`${error instanceof Error ? error.message : error}\n`);
    return 1;
  }
}

async function readRequest(args: readonly string[], env: RegisterToolOptions["env"]) {
  const string = { type: "string" } as const;
  let values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        url: string,
        token: string,
        name: string,
        out: string,
        help: { type: "boolean", short: "h" },
      },
    }));
  } catch (error) {
    throw new UsageError(
      `Cannot read the arguments: ${error instanceof Error ? error.message : error}`,
    );
  }
  if (values.help) return "help";
  const url = values.url ?? env.GITEA_URL;
  const token = values.token ?? env.REGISTRATION_TOKEN ??
    await readSecretFile(env.REGISTRATION_TOKEN_FILE);
  if (url === undefined || !/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new UsageError(`Cannot register: --url is ${quote(url)}, it must be an http(s) URL`);
  }
  if (token === undefined || token === "") {
    throw new UsageError("Cannot register: there is no registration token");
  }
  if (values.out === undefined) throw new UsageError("Cannot register: --out is missing");
  return {
    url,
    token: new Secret(token),
    name: values.name ?? "gitea-dynamic-runner",
    out: values.out,
  };
}

async function readSecretFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return (await Deno.readTextFile(path)).trim();
  } catch (error) {
    throw new UsageError(`Cannot read REGISTRATION_TOKEN_FILE "${path}": ${error}`);
  }
}

/** Makes the three files, empty; those not written to are removed when it is disposed of. */
async function reserve(out: string) {
  const folder = dirname(out);
  const uuidFile = `${folder}/GITEA_RUNNER_UUID`;
  const tokenFile = `${folder}/GITEA_RUNNER_TOKEN`;
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const made: string[] = [];
  const remove = async () => {
    for (const path of made) await Deno.remove(path).catch(() => {});
  };
  try {
    for (const path of [out, uuidFile, tokenFile]) {
      await Deno.writeTextFile(path, "", { createNew: true, mode: 0o600 });
      made.push(path);
    }
  } catch (error) {
    await remove();
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw new Error(
      "Cannot write the registration: a file of it exists already; it may be in use, and Gitea tells a token only once. " +
        `Choose another --out, or remove it (${out}, ${uuidFile}, ${tokenFile})`,
      { cause: error },
    );
  }
  return {
    async write(uuid: string, token: Secret): Promise<void> {
      const value = token.reveal();
      const lines = `GITEA_RUNNER_UUID=${uuid}\nGITEA_RUNNER_TOKEN=${value}\n`;
      await Deno.writeTextFile(out, lines);
      await Deno.writeTextFile(uuidFile, uuid);
      await Deno.writeTextFile(tokenFile, value);
      made.length = 0;
    },
    [Symbol.asyncDispose]: remove,
  };
}

function nextSteps(url: string, out: string, name: string): string {
  const files = ["GITEA_RUNNER_UUID", "GITEA_RUNNER_TOKEN"].map((file) =>
    `${dirname(out)}/${file}`
  );
  const width = Math.max(...[out, ...files].map((path) => path.length));
  return `Registered "${name}" at ${url}.

  ${out.padEnd(width)}   both variables
${files.map((path) => `  ${path.padEnd(width)}   its value alone`).join("\n")}

Next, on this machine (add ALLOW_UNISOLATED=yes where Gitea is not on loopback: README says what it means)
  set -a; . ${out}; set +a; GITEA_URL=${url} npx -y deno@2.9.6 task start
or, with the values in files, GITEA_RUNNER_UUID_FILE and GITEA_RUNNER_TOKEN_FILE. On Kubernetes both files become
keys of the controller's Secret: docs/install.md, "Registration and Secret".

One registration serves one controller. Gitea tells the token only once: keep these files.
`;
}

function quote(value: string | undefined): string {
  return value === undefined ? "missing" : `"${value}"`;
}

if (import.meta.main) {
  const say = (text: string) => void Deno.stdout.writeSync(new TextEncoder().encode(text));
  const signal = AbortSignal.timeout(60_000);
  Deno.exitCode = await runRegister(Deno.args, { env: Deno.env.toObject(), say, signal });
}
