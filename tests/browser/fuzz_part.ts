import { createHash } from "node:crypto";
import { createControllerPlace, startController } from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { serveForge } from "../support/served_forge.ts";
import { findSchemathesis, type Schemathesis } from "./schemathesis.ts";
import { check, say } from "./support.ts";

const SLOW = "for i in $(seq 1 600); do sleep 1; done";
const TOKENS = { viewer: "token-of-a-viewer", admin: "token-of-an-admin" } as const;
/** Without a seed of one's own (`FUZZ_SEED`) each run tries the same. */
const SEED = Number(Deno.env.get("FUZZ_SEED") ?? 20_261_130);
/** Made-up requests per operation: all are refused alike, or they may reach what acts. */
const [FEW, MANY] = [5, 25];

/**
 * Requests made from the OpenAPI document at real controllers with jobs that run and wait: where nobody
 * signs in, and where everybody has to, as an admin, as a viewer, as nobody, and with a wrong token. No
 * answer may be a 5xx, or one that the document does not describe.
 */
export async function fuzz(): Promise<void> {
  const tool = await findSchemathesis();
  await at(tool, {}, [["everybody on this machine", {}, MANY]]);
  const rules = Object.entries(TOKENS).map(([role, token]) =>
    `${role}-token:${role}:${createHash("sha256").update(token).digest("hex")}`
  );
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  await at(tool, { ADMIN_TOKENS: rules.join("\n") }, [
    ["nobody", {}, FEW],
    ["a wrong token", bearer("wrong"), FEW],
    ["a viewer", bearer(TOKENS.viewer), FEW],
    ["an admin", bearer(TOKENS.admin), MANY],
  ]);
}

async function at(
  tool: Schemathesis,
  env: Readonly<Record<string, string>>,
  callers: readonly (readonly [
    who: string,
    headers: Readonly<Record<string, string>>,
    examples: number,
  ])[],
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const forge = stack.use(serveForge());
  const place = stack.use(await createControllerPlace());
  const controller = stack.use(
    await startController({
      stateDir: place.stateDir,
      env: { ...forge.env, ...env, POD_CAPACITY: "2" },
    }),
  );
  const url = await controller.url();
  for (const name of ["first", "second", "third", "fourth"]) forge.dispatch(name, SLOW);
  await eventually(async () => (await controller.log()).some(isRunning), {
    what: "a job to run",
    timeoutMs: 60_000,
    everyMs: 200,
  });
  const answer = await fetch(`${url}/api/v1/openapi.json`, {
    headers: { authorization: `Bearer ${TOKENS.viewer}` },
  });
  const run = { url, document: await answer.text(), seed: SEED };
  for (const [who, headers, examples] of callers) {
    const { ok, text } = await tool.run({ ...run, headers, examples });
    if (!ok) say(text.slice(0, 20_000));
    check(`no answer of the API to ${who} is a 5xx, or undescribed: ${sumOf(text)}`, ok);
  }
  await controller.end("SIGTERM", { ms: 30_000 });
}

function isRunning({ msg, event }: { readonly msg: string; readonly event?: unknown }): boolean {
  return msg === "assignment transition" && event === "running";
}

/** The line that says how many requests there were. */
function sumOf(text: string): string {
  return /\d+ generated[^\n]*/.exec(text)?.[0].trim() ?? "no sum was printed";
}
