import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { PingService } from "../../proto/gen/ping/v1/ping_pb.ts";
import { connectClient } from "./client.ts";
import { Code, codeName, ConnectError, createContextKey, createContextValues } from "./error.ts";
import { connectFetchHandler } from "./fetch_handler.ts";
import { connectHandler, type NodeHandlerOptions } from "./node_handler.ts";
import type { Register } from "./router.ts";

const peer = createContextKey("nobody");

const register: Register = (router) =>
  router.service(PingService, {
    ping: (request, context) => {
      if (request.data === "no") throw new ConnectError("go away", Code.PermissionDenied);
      const header = context.requestHeader.get("x-name") ?? "-";
      return { data: `${request.data} ${header} ${context.values.get(peer)}` };
    },
  });

async function serve(options: NodeHandlerOptions, use: (origin: string) => Promise<void>) {
  const server = createServer(connectHandler(register, options)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert(address !== null && typeof address === "object");
  try {
    await use(`http://127.0.0.1:${address.port}`);
  } finally {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
}

Deno.test("connectHandler() serves under the prefix with context values when called by connectClient()", async () => {
  const contextValues = () => createContextValues().set(peer, "somebody");
  await serve({ contextValues }, async (origin) => {
    const client = connectClient(PingService, {
      baseUrl: `${origin}/api/actions`,
      headers: () => ({ "x-name": "n" }),
    });
    assert.equal((await client.ping({ data: "hello" })).data, "hello n somebody");
    await assert.rejects(
      client.ping({ data: "no" }),
      (error) => error instanceof ConnectError && error.code === Code.PermissionDenied,
    );
    const other = await fetch(`${origin}/elsewhere`);
    await other.body?.cancel();
    assert.equal(other.status, 404);
  });
});

Deno.test("connectHandler() refuses a message over readMaxBytes and serves on when the next one fits", async () => {
  await serve({ readMaxBytes: 1000 }, async (origin) => {
    const client = connectClient(PingService, { baseUrl: `${origin}/api/actions` });
    const started = performance.now();
    await assert.rejects(
      client.ping({ data: "x".repeat(5000) }),
      (error) => error instanceof ConnectError && error.code === Code.ResourceExhausted,
    );
    assert.equal((await client.ping({ data: "y" })).data, "y - nobody");
    assert(performance.now() - started < 4000, "the connection stalled after the refusal");
  });
});

Deno.test("connectHandler() asks the gate before it reads the body when there is one", async () => {
  const gate = () => {
    throw new ConnectError("not you", Code.Unauthenticated);
  };
  await serve({ gate, readMaxBytes: 10 }, async (origin) => {
    const client = connectClient(PingService, { baseUrl: `${origin}/api/actions` });
    await assert.rejects(
      client.ping({ data: "x".repeat(5000) }),
      (error) => error instanceof ConnectError && error.code === Code.Unauthenticated,
    );
  });
});

Deno.test("connectFetchHandler() answers JSON, gzip and binary, and leaves other paths alone", async () => {
  const handle = connectFetchHandler(register);
  const client = connectClient(PingService, {
    baseUrl: "http://forge.example/api/actions",
    fetch: async (input, init) => {
      const answer = await handle(new Request(input, init));
      assert(answer !== undefined);
      return answer;
    },
  });
  assert.equal((await client.ping({ data: "a" })).data, "a - nobody");
  const url = "http://forge.example/api/actions/ping.v1.PingService/Ping";
  const big = JSON.stringify({ data: "z".repeat(4000) });
  const answer = await handle(
    new Request(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "content-encoding": "gzip",
        "accept-encoding": "gzip",
      },
      body: new Response(big).body?.pipeThrough(new CompressionStream("gzip")) ?? null,
    }),
  );
  assert.equal(answer?.headers.get("content-encoding"), "gzip");
  const text = await new Response(answer?.body?.pipeThrough(new DecompressionStream("gzip")))
    .text();
  assert.equal(JSON.parse(text).data, `${"z".repeat(4000)} - nobody`);
  assert.equal(await handle(new Request("http://forge.example/other")), undefined);
});

Deno.test("codeName() gives the protocol's word when a code has two parts", () => {
  assert.equal(codeName(Code.ResourceExhausted), "resource_exhausted");
  assert.equal(codeName(Code.Unavailable), "unavailable");
});
