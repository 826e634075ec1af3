import assert from "node:assert/strict";
import type { Config } from "../controller/config/config.ts";
import { type Logger, silentLogger } from "../lib/logger.ts";
import { ok, UUID } from "../tests/support/config_env.ts";
import { installImage } from "./process_backends.ts";

const TOKEN = "t".repeat(40);
const REAL_GITEA = {
  GITEA_URL: "http://127.0.0.1:3000",
  GITEA_RUNNER_UUID: UUID,
  GITEA_RUNNER_TOKEN: TOKEN,
};

/** Installs into a new folder on a machine without the official runner; what was warned about. */
async function warningsOf(config: Config): Promise<string[]> {
  const directory = await Deno.makeTempDir();
  try {
    const warnings: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (text) => void warnings.push(text) };
    const { signal } = new AbortController();
    await installImage({ config, directory, isRoot: false, path: "/usr/bin:/bin", logger, signal });
    return warnings;
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("installImage() warns when jobs of a real Gitea would meet the sample runner", async () => {
  const [warning, ...others] = await warningsOf(ok(REAL_GITEA));
  assert.match(warning ?? "", /run: steps only.*CI_RUNNER_BIN/);
  assert.deepEqual(others, []);
});

Deno.test("installImage() says nothing about the sample runner when the forge is the sample, too", async () => {
  assert.deepEqual(await warningsOf(ok({})), []);
});

Deno.test("installImage() names CI_RUNNER_BIN when there is no such file", async () => {
  await assert.rejects(
    warningsOf(ok({ CI_RUNNER_BIN: "/nowhere/gitea-runner" })),
    /^Error: Name the official runner in CI_RUNNER_BIN: "\/nowhere\/gitea-runner" is not a file/,
  );
});
