import assert from "node:assert/strict";
import { abortable } from "../../lib/abortable.ts";
import { systemClock } from "../../lib/clock.ts";
import { listenUnix } from "./unix_listener.ts";

Deno.test("listenUnix() closes the connection, too, that it is accepting when it is disposed of", async () => {
  const directory = await Deno.makeTempDir();
  using limit = systemClock.timeout(10_000);
  for (let round = 0; round < 100; round++) {
    const path = `${directory}/${round}.sock`;
    const listener = listenUnix(path, () => {});
    using connection = await Deno.connect({ transport: "unix", path });
    // Some moments earlier or later.
    for (let turns = 0; turns < round % 10; turns++) await Promise.resolve();
    await listener[Symbol.asyncDispose]();
    assert.equal(await abortable(connection.read(new Uint8Array(1)), limit.signal), null);
  }
  await Deno.remove(directory, { recursive: true });
});
