import assert from "node:assert/strict";
import { openUnixClient } from "../../clients/grpc/client.ts";
import { repeat } from "../support/echo_server.ts";
import { eventually } from "../support/eventually.ts";
import { startProcess } from "../support/process.ts";

const CLIENTS = 20;
/** Has glibc overwrite what was freed, so that a use of it is a crash and not a matter of luck. */
const env = { MALLOC_PERTURB_: "165" };

Deno.test("serveUnix() outlives clients that end their stream and say good-bye", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/echo.sock`;
  {
    const program = new URL("../support/echo_server.ts", import.meta.url).pathname;
    await using server = await startProcess(Deno.execPath(), ["run", "-A", program, path], {
      logFile: `${directory}/log`,
      env,
    });
    let dead: number | null = null;
    server.exited.then((code) => dead = code);
    await eventually(() => Deno.stat(path).then(() => true), { what: "the server" });

    for (let i = 0; i < CLIENTS && dead === null; i++) {
      using client = openUnixClient(path);
      const sent = new Uint8Array(1_500).fill(i);
      for await (const got of client.stream(repeat, sent, { signal: AbortSignal.timeout(5_000) })) {
        assert.deepEqual(got, sent);
        break;
      }
    }
    // It has taken the last good-bye when it answers once more.
    using last = openUnixClient(path);
    const signal = AbortSignal.timeout(5_000);
    for await (const _ of last.stream(repeat, new Uint8Array(1), { signal })) break;
    assert.equal(dead, null, await server.tail(3));
  }
  await Deno.remove(directory, { recursive: true });
});
