import assert from "node:assert/strict";
import { serveUnix } from "../../clients/grpc/server.ts";

Deno.test("serveUnix() leaves its socket to no child process", async () => {
  const folder = await Deno.makeTempDir();
  await using _folder = {
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
  await using _server = serveUnix(`${folder}/api.sock`, []);

  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", "ls -l /proc/self/fd"],
    stdin: "null",
  }).output();

  assert.doesNotMatch(new TextDecoder().decode(stdout), /socket:/);
});
