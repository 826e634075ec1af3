import assert from "node:assert/strict";
import { startCutProxy } from "./cut_proxy.ts";

Deno.test("startCutProxy() loses what is sent while it is cut, for good", async () => {
  const heard: string[] = [];
  const upstream = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of upstream) {
      for await (const bytes of connection.readable) heard.push(new TextDecoder().decode(bytes));
    }
  })();
  {
    const { port } = upstream.addr;
    await using proxy = startCutProxy({ hostname: "127.0.0.1", port });
    const connect = () => Deno.connect({ hostname: "127.0.0.1", port: proxy.port });
    const say = (connection: Deno.Conn, text: string) =>
      connection.write(new TextEncoder().encode(text));
    const until = async (count: number) => {
      while (heard.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const old = await connect();
    await say(old, "before");
    await until(1);
    proxy.cut = true;
    const fresh = await connect();
    const ends = [old, fresh].map((connection) => connection.read(new Uint8Array(1)));
    await say(old, "lost on an old connection");
    await say(fresh, "lost on a new one");
    const silent = new Promise((resolve) => setTimeout(() => resolve("silent"), 100));
    assert.equal(await Promise.race([...ends, silent]), "silent");
    proxy.cut = false;
    assert.deepEqual(await Promise.all(ends), [null, null]);
    const after = await connect();
    await say(after, "after");
    await until(2);
    assert.deepEqual(heard, ["before", "after"]);
    for (const connection of [old, fresh, after]) connection.close();
  }
  upstream.close();
  await serving;
});
