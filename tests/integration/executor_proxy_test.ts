import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  type AddressInfo,
  connect as connectTcp,
  createServer as createTcpServer,
  type Socket,
} from "node:net";
import { connect as connectTls } from "node:tls";
import { createGateCertificate } from "../../clients/x509/gate_certificate.ts";
import { createGiteaRoute } from "../../executor/gitea_route.ts";
import { type GateProxyDeps, openGateProxy } from "../../executor/proxy.ts";
import type { RunnerCall } from "../../executor/runner_answer.ts";
import { abortable, untilAborted } from "../../lib/abortable.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";

interface Origin extends AsyncDisposable {
  readonly port: number;
  readonly seen: { method: string; url: string; headers: IncomingMessage["headers"] }[];
}

/** An origin that says what it was sent. */
async function openOrigin(): Promise<Origin> {
  const seen: Origin["seen"] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, headers });
    if (url.startsWith("/redirect")) return void response.writeHead(302, { location: "/x" }).end();
    if (url.startsWith("/stream")) {
      response.writeHead(200, { "content-type": "text/plain" });
      response.write("first\n");
      for await (const part of request) response.write(part);
      return void response.end("last\n");
    }
    let size = 0;
    for await (const part of request) size += part.length;
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.setHeader("connection", "close, x-hop");
    response.setHeader("x-hop", "not for you");
    response.end(url.startsWith("/big") ? "x".repeat(1024 * 1024) : `got ${size}`);
  };
  const server: Server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: portOf(server),
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Connections and nothing else, as `serve` has them. */
async function openTcp(serve: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  let accepted = Promise.withResolvers<void>();
  const server = createTcpServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    serve(socket);
    accepted.resolve();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    /** Resolves at the next connection, at once when there was one since the last call. */
    async accepted() {
      await accepted.promise;
      accepted = Promise.withResolvers();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("Listen: no port");
  return address.port;
}

async function setup(giteaUrl: string, secure = false, more: Partial<GateProxyDeps> = {}) {
  const calls: RunnerCall[] = [];
  const stop = new AbortController();
  const host = new URL(giteaUrl).hostname;
  const certificate = await createGateCertificate(host, Date.now());
  const proxy = await openGateProxy({
    route: createGiteaRoute(giteaUrl),
    logger: silentLogger,
    signal: stop.signal,
    service: {
      refuse: ({ header }) =>
        header("x-stranger") === undefined
          ? undefined
          : { status: 403, headers: {}, body: new TextEncoder().encode("no") },
      answer(call) {
        calls.push(call);
        const body = new TextEncoder().encode(`facade ${call.method}`);
        return Promise.resolve({ status: 200, headers: { "x-from": "facade" }, body });
      },
    },
    ...(secure ? { certificate } : {}),
    ...more,
  });
  const client = Deno.createHttpClient({
    proxy: { url: proxy.url },
    caCerts: [certificate.certificatePem],
  });
  return {
    calls,
    proxy,
    port: Number(new URL(proxy.url).port),
    certificate,
    fetch: (url: string, init: RequestInit = {}) =>
      fetch(url, { redirect: "manual", ...init, client }),
    async [Symbol.asyncDispose]() {
      client.close();
      stop.abort();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

const RPC = "/api/actions/runner.v1.RunnerService";

Deno.test("openGateProxy() sends RunnerService of Gitea to the service and nothing else", async () => {
  await using origin = await openOrigin();
  const gitea = `http://127.1:${origin.port}/git`;
  await using it = await setup(gitea);
  const call = await it.fetch(`${gitea}${RPC}/Declare`, {
    method: "POST",
    headers: { "x-runner-token": "nonce" },
    body: "hello",
  });
  assert.equal(await call.text(), "facade /runner.v1.RunnerService/Declare");
  assert.equal(it.calls[0]?.header("x-runner-token"), "nonce");
  assert.equal(new TextDecoder().decode(it.calls[0]?.body), "hello");
  assert.equal(await (await it.fetch(`${gitea}${RPC}/Declare`)).text(), "got 0");
  const other = await it.fetch(`http://127.1:${origin.port}${RPC}/Declare`, { method: "POST" });
  assert.equal(await other.text(), "got 0");
  assert.equal(it.calls.length, 1);
});

Deno.test("openGateProxy() does not wait for the body of a call that is refused", async () => {
  for (
    const [gitea, secure] of [["http://127.1:4711", false], ["https://gitea.test", true]] as const
  ) {
    await using proxy = await setup(gitea, secure);
    let asked = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (++asked <= 4) return controller.enqueue(new Uint8Array(1024));
        return new Promise(() => {});
      },
    });
    const headers = { "x-stranger": "yes" };
    const answer = await proxy.fetch(`${gitea}${RPC}/UpdateLog`, { method: "POST", headers, body });
    assert.deepEqual([answer.status, await answer.text()], [403, "no"]);
    assert.deepEqual(proxy.calls, []);
  }
});

Deno.test("openGateProxy() passes other requests through with their host, headers and bodies", async () => {
  await using origin = await openOrigin();
  await using it = await setup(`http://127.1:${origin.port}`);
  const url = `http://127.1:${origin.port}/api/v1/repos?q=a%20b&r=%2F`;
  const answer = await it.fetch(url, {
    method: "POST",
    headers: { authorization: "token job-token", "x-mine": "1" },
    body: "x".repeat(1024 * 1024),
  });
  assert.equal(await answer.text(), `got ${1024 * 1024}`);
  assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
  assert.equal(answer.headers.get("x-hop"), null);
  const [seen] = origin.seen;
  assert.equal(seen?.url, "/api/v1/repos?q=a%20b&r=%2F");
  assert.equal(seen?.headers.host, `127.0.0.1:${origin.port}`);
  assert.equal(seen?.headers.authorization, "token job-token");
  assert.equal(seen?.headers["proxy-connection"], undefined);
  const redirect = await it.fetch(`http://127.1:${origin.port}/redirect`);
  assert.equal(redirect.status, 302);
  await redirect.body?.cancel();
});

Deno.test("openGateProxy() keeps serving one connection after many answers of 1 MiB", async () => {
  await using origin = await openOrigin();
  await using it = await setup(`http://127.1:${origin.port}`);
  for (let i = 0; i < 40; i++) {
    const answer = await it.fetch(`http://127.1:${origin.port}/big/${i}`);
    assert.equal((await answer.arrayBuffer()).byteLength, 1024 * 1024);
  }
});

Deno.test("openGateProxy() streams both ways", async () => {
  await using origin = await openOrigin();
  await using it = await setup(`http://127.1:${origin.port}`);
  const socket = connectTcp(it.port, "127.0.0.1");
  const parts: string[] = [];
  const heard = (text: string) =>
    new Promise<void>((resolve) => {
      const check = () => parts.join("").includes(text) ? resolve() : undefined;
      check();
      socket.on("data", check);
    });
  socket.on("data", (part) => parts.push(String(part)));
  socket.write(
    `POST http://127.1:${origin.port}/stream HTTP/1.1\r\nHost: 127.1:${origin.port}\r\n` +
      `Transfer-Encoding: chunked\r\n\r\n`,
  );
  await heard("first\n");
  socket.write("7\r\nmiddle\n\r\n");
  await heard("middle\n");
  socket.write("0\r\n\r\n");
  await heard("last\n");
  assert.match(parts.join(""), new RegExp("^HTTP/1.1 200"));
  await new Promise<void>((resolve) => socket.on("close", () => resolve()).destroy());
});

Deno.test("openGateProxy() answers 502 when the origin is away and 400 to origin-form", async () => {
  await using it = await setup("http://127.1:65530");
  const answer = await it.fetch("http://127.1:65530/");
  assert.equal(answer.status, 502);
  await answer.body?.cancel();
  const direct = await fetch(`http://127.0.0.1:${it.port}/`);
  assert.equal(direct.status, 400);
  await direct.body?.cancel();
});

Deno.test("openGateProxy() ends the TLS of an https Gitea itself and splits inside", async () => {
  await using it = await setup("https://gitea.test:8443", true);
  const answer = await it.fetch(`https://gitea.test:8443${RPC}/FetchTask`, { method: "POST" });
  assert.equal(await answer.text(), "facade /runner.v1.RunnerService/FetchTask");
  assert.equal(answer.headers.get("x-from"), "facade");
  // Nobody listens at the real Gitea: everything else must try to go there.
  const other = await it.fetch("https://gitea.test:8443/api/v1/version");
  assert.equal(other.status, 502);
  await other.body?.cancel();
});

Deno.test("openGateProxy() shows a certificate for Gitea's host that is no CA", async () => {
  await using it = await setup("https://gitea.test:8443", true);
  const socket = connectTcp(it.port, "127.0.0.1");
  socket.write("CONNECT gitea.test:8443 HTTP/1.1\r\nHost: gitea.test:8443\r\n\r\n");
  await new Promise<void>((resolve) => socket.once("data", () => resolve()));
  const secure = connectTls({
    socket,
    servername: "gitea.test",
    ca: it.certificate.certificatePem,
  });
  await new Promise<void>((resolve, reject) => {
    secure.on("secureConnect", resolve);
    secure.on("error", reject);
  });
  assert.equal(secure.getPeerX509Certificate()?.ca ?? false, false);
  await new Promise<void>((resolve) => secure.on("close", () => resolve()).destroy());
});

Deno.test("openGateProxy() tunnels every other CONNECT without looking inside", async () => {
  await using origin = await openOrigin();
  await using it = await setup("https://gitea.test:8443", true);
  const socket = connectTcp(it.port, "127.0.0.1");
  let heard = "";
  const until = (pattern: RegExp) =>
    new Promise<void>((resolve) => {
      const check = () => pattern.test(heard) ? resolve() : undefined;
      socket.on("data", check);
    });
  socket.on("data", (part) => heard += String(part));
  socket.write(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await until(/^HTTP\/1.1 200 [^\r]*\r\n\r\n$/);
  heard = "";
  socket.write(`POST ${RPC}/FetchTask HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc`);
  await until(/got 3/);
  assert.equal(it.calls.length, 0);
  await new Promise<void>((resolve) => socket.on("close", () => resolve()).destroy());
});

Deno.test("openGateProxy() is closed at once while calls are held and origins are silent", async () => {
  await using silent = await openTcp(() => {});
  for (const secure of [false, true]) {
    const gitea = `${secure ? "https" : "http"}://127.1:${silent.port}`;
    const held = Promise.withResolvers<void>();
    await using it = await setup(gitea, secure, {
      service: {
        refuse: () => undefined,
        answer(_call, signal) {
          held.resolve();
          return untilAborted(signal);
        },
      },
    });
    const calls = Promise.allSettled([
      it.fetch(`${gitea}${RPC}/Declare`, { method: "POST" }),
      it.fetch(`${gitea}/api/v1/version`),
    ]);
    await Promise.all([held.promise, silent.accepted()]);
    using limit = systemClock.timeout(5_000);
    await abortable(Promise.resolve(it.proxy[Symbol.asyncDispose]()), limit.signal);
    for (const call of await calls) {
      if (call.status === "fulfilled") await call.value.body?.cancel();
    }
  }
});

Deno.test("openGateProxy() answers 502 when the proxy on the way goes without an answer", async () => {
  await using upstream = await openTcp((socket) => socket.once("data", () => socket.end()));
  await using it = await setup("http://gitea.test", false, {
    upstreamProxy: () => new URL(`http://127.0.0.1:${upstream.port}`),
  });
  const socket = connectTcp(it.port, "127.0.0.1");
  socket.write("CONNECT example.test:443 HTTP/1.1\r\nHost: example.test\r\n\r\n");
  using limit = systemClock.timeout(5_000);
  const answer = new Promise<string>((resolve) =>
    socket.once("data", (part) => resolve(`${part}`))
  );
  assert.match(await abortable(answer, limit.signal), /^HTTP\/1\.1 502 /);
  await new Promise<void>((resolve) => socket.on("close", () => resolve()).destroy());
});
