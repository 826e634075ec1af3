import assert from "node:assert/strict";
import { systemClock as clock } from "../lib/clock.ts";
import { silentLogger as logger } from "../lib/logger.ts";
import { ChildError } from "./child_process.ts";
import { startForge } from "./sample_forge.ts";
import { stateFailure } from "./state_directory.ts";
import { createSupervisor } from "./supervisor.ts";

Deno.test("startForge() names the port that another program holds, whatever that answers", async () => {
  const directory = await Deno.makeTempDir({ prefix: "gdr-forge-" });
  await using stranger = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => Response.json({ version: "1.26.0" }),
  );
  try {
    await using supervisor = createSupervisor({ directory, logger, clock });
    const { signal } = new AbortController();
    const starting = startForge({
      directory: `${directory}/forge`,
      port: stranger.addr.port,
      env: Deno.env.toObject(),
      supervisor,
      clock,
      signal,
    });
    await assert.rejects(starting, (error) => {
      assert.ok(error instanceof ChildError);
      assert.match(error.message, /^Start forge: it ended with exit code 1; .*AddrInUse/);
      assert.equal(stateFailure(directory, error), error, "that is no matter of STATE_DIR");
      return true;
    });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
