import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { type Clock, systemClock } from "../lib/clock.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import type { ExecutorName } from "../controller/model/ids.ts";
import { type Svid, watchSvids } from "../clients/spiffe/workload_api.ts";
import { eventually } from "../tests/support/eventually.ts";
import { startTrustDomain, type TrustDomain, type TrustDomainOptions } from "./trust_domain.ts";

const TD = "test.example";
const ID = `spiffe://${TD}/ci/acme/app/build`;
const call = { signal: new AbortController().signal };

/** grpc-js keeps a back-off timer, unreferenced, for up to a second after a refused connection is closed. */
const graceful = { sanitizeOps: false, sanitizeResources: false } as const;

function executor(name: string): ExecutorName {
  return name as ExecutorName;
}

async function setup() {
  const directory = await Deno.makeTempDir({ prefix: "td-" });
  const clock = createFakeClock(Date.now());
  const start = (options: Partial<TrustDomainOptions> = {}) =>
    startTrustDomain({ directory, trustDomain: TD, clock, logger: silentLogger, ...options });
  return {
    directory,
    clock,
    start,
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

function watch(endpoint: string, clock: Clock = systemClock) {
  const options = { endpoint, logger: silentLogger, clock, random: () => 0 };
  return watchSvids(options, { signal: new AbortController().signal });
}

function ready(source: ReturnType<typeof watch>) {
  return source.ready(AbortSignal.timeout(10_000));
}

Deno.test("watchSvids() waits with the API's word while no identity is bound, then gets it", async () => {
  await using given = await setup();
  await using domain = await given.start();
  const endpoint = await domain.endpoint(executor("ci-1"), null, call);
  await using source = watch(endpoint);
  await eventually(() => source.status().lastError?.includes("no identity issued"), {
    what: "the refusal",
  });
  assert.match(
    source.status().lastError ?? "",
    /^PERMISSION_DENIED: .*: no entry at SPIRE has sel/,
  );
  assert.equal(source.current(), null);
  await domain.bind({ executor: executor("ci-1"), userId: null, spiffeId: ID }, call);
  const svid = await ready(source);
  assert.equal(svid.spiffeId, ID);
  assert.equal(source.status().state, "live");
  assert.ok(svid.expiresAt > given.clock.now());
});

Deno.test("startTrustDomain() gives each executor its own serial and one executor the same", async () => {
  await using given = await setup();
  await using domain = await given.start();
  const serials: string[] = [];
  for (const name of ["ci-1", "ci-2", "ci-1"]) {
    const endpoint = await domain.endpoint(executor(name), null, call);
    await domain.bind({ executor: executor(name), userId: null, spiffeId: ID }, call);
    await using source = watch(endpoint);
    serials.push((await ready(source)).serial);
  }
  assert.notEqual(serials[0], serials[1]);
  assert.equal(serials[0], serials[2]);
});

Deno.test("startTrustDomain() pushes a new SVID at half of its life", async () => {
  await using given = await setup();
  await using domain = await given.start({ svidTtlMs: 3_600_000 });
  await using source = watch(await domain.endpointFor(ID));
  const first = await ready(source);
  const seen: string[] = [];
  using _listener = source.subscribe((svid) => seen.push(svid.serial));
  await given.clock.advance(1_799_000);
  assert.deepEqual(seen, []);
  await given.clock.advance(2_000);
  const second = await eventually(() => seen[0], { what: "the second SVID" });
  assert.notEqual(second, first.serial);
  assert.equal(source.current()?.serial, second);
});

Deno.test("startTrustDomain() pushes a valid SVID soon after the machine slept or its clock was set", async () => {
  await using given = await setup();
  let jump = 0;
  const clock = { ...given.clock, now: () => given.clock.now() + jump };
  await using domain = await given.start({ clock });
  await using source = watch(await domain.endpointFor(ID));
  await ready(source);
  const seen: Svid[] = [];
  using _listener = source.subscribe((svid) => seen.push(svid));
  for (const [index, hours] of [2, -2].entries()) {
    jump = hours * 3_600_000;
    await given.clock.advance(15_000);
    const svid = await eventually(() => seen[index], { what: "an SVID of the new time" });
    const { validFrom, validTo } = new X509Certificate(svid.certificatePem);
    const now = clock.now();
    assert.ok(Date.parse(validFrom) <= now && Date.parse(validTo) > now, `${hours} h`);
  }
  await given.clock.advance(60_000);
  assert.equal(seen.length, 2);
});

Deno.test("unbind() ends the stream and refuses afterwards; absent is success", async () => {
  await using given = await setup();
  await using domain = await given.start();
  const endpoint = await domain.endpoint(executor("ci-1"), null, call);
  await domain.bind({ executor: executor("ci-1"), userId: null, spiffeId: ID }, call);
  // A clock that stands keeps the source from dialling a socket that is gone: see `graceful`.
  await using source = watch(endpoint, given.clock);
  await ready(source);
  await domain.unbind(executor("ci-1"), call);
  await eventually(() => source.status().state === "stale", { what: "the end of the stream" });
  assert.equal(source.current()?.spiffeId, ID, "the last SVID stays until it expires");
  await domain.unbind(executor("ci-1"), call);
});

Deno.test("startTrustDomain() serves executors of an earlier run from the same CA and paths", async () => {
  await using given = await setup();
  let endpoint: string;
  let bundle: string;
  {
    await using domain = await given.start();
    endpoint = await domain.endpoint(executor("ci-1"), null, call);
    await domain.bind({ executor: executor("ci-1"), userId: null, spiffeId: ID }, call);
    await using source = watch(endpoint);
    bundle = (await ready(source)).bundlePem;
  }
  await using _again = await given.start();
  await using source = watch(endpoint);
  const svid = await ready(source);
  assert.equal(svid.spiffeId, ID);
  assert.equal(svid.bundlePem, bundle);
});

Deno.test("startTrustDomain() keeps its secrets to its own user", async () => {
  await using given = await setup();
  await using domain = await given.start();
  const endpoint = await domain.endpointFor(ID);
  const mode = async (path: string) => ((await Deno.stat(path)).mode ?? 0) & 0o777;
  assert.equal(await mode(given.directory), 0o700);
  assert.equal(await mode(join(given.directory, "authority.pem")), 0o600);
  assert.equal(await mode(join(given.directory, "identities.json")), 0o600);
  assert.equal(await mode(endpoint.slice("unix://".length)), 0o600);
});

Deno.test("endpoint() puts the socket where another user can reach it, for that user only", async (t) => {
  if (Deno.uid() !== 0) return void await t.step({ name: "needs root", ignore: true, fn() {} });
  await using given = await setup();
  await using domain = await given.start();
  const path = (await domain.endpoint(executor("ci-1"), 2001, call)).slice("unix://".length);
  const socket = await Deno.stat(path);
  assert.equal(socket.uid, 2001);
  assert.equal((socket.mode ?? 0) & 0o777, 0o600);
  assert.ok(!path.startsWith(given.directory));
  assert.equal(((await Deno.stat(join(path, ".."))).mode ?? 0) & 0o777, 0o711);
  await Deno.remove(join(path, ".."), { recursive: true });
});

Deno.test("bind() refuses a SPIFFE ID of another trust domain", async () => {
  await using given = await setup();
  await using domain = await given.start();
  const odd = { executor: executor("ci-1"), userId: null, spiffeId: "spiffe://other/ci/a/b/c" };
  await assert.rejects(domain.bind(odd, call), /not of "test.example"/);
});

Deno.test("startTrustDomain() refuses the CA of another trust domain and a damaged file", async () => {
  await using given = await setup();
  await (await given.start())[Symbol.asyncDispose]();
  const other = { directory: given.directory, trustDomain: "other", clock: given.clock };
  const start = (options: typeof other): Promise<TrustDomain> =>
    startTrustDomain({ ...options, logger: silentLogger });
  await assert.rejects(start(other), /remove it to start anew/);
  await Deno.writeTextFile(join(given.directory, "identities.json"), "{");
  await assert.rejects(start({ ...other, trustDomain: TD }), /the file is damaged/);
});

Deno.test(
  "watchSvids() recovers when the Workload API comes late and when it restarts",
  graceful,
  async () => {
    await using given = await setup();
    await using source = watch(`unix://${given.directory}/sockets/none.sock`);
    await eventually(() => source.status().lastError !== null, { what: "the failure" });
    assert.match(source.status().lastError ?? "", /^UNAVAILABLE/);
    const first = await given.start();
    const endpoint = await first.endpointFor(ID);
    await using restarted = watch(endpoint);
    const serial = (await ready(restarted)).serial;
    await first[Symbol.asyncDispose]();
    await eventually(() => restarted.status().state === "stale", { what: "the loss" });
    await using _second = await given.start();
    await eventually(() => restarted.status().state === "live", { what: "the new stream" });
    assert.notEqual(restarted.current()?.serial, serial);
  },
);

/** Accepts at a socket in the directory, says `words`, and then nothing. */
function listenAsStranger(directory: string, words: string) {
  const path = `${directory}/stranger.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const open: Deno.Conn[] = [];
  const accepted = Promise.withResolvers<void>();
  const running = (async () => {
    for await (const peer of listener) {
      open.push(peer);
      await peer.write(new TextEncoder().encode(words)).catch(() => {});
      accepted.resolve();
    }
  })();
  return {
    endpoint: `unix://${path}`,
    accepted: accepted.promise,
    /** Connections that there were. */
    count: () => open.length,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const peer of open) peer.close();
      await running;
    },
  };
}

Deno.test(
  "watchSvids() says after 5 s that a socket which accepts does not answer",
  graceful,
  async () => {
    await using given = await setup();
    await using stranger = listenAsStranger(given.directory, "");
    await using source = watch(stranger.endpoint, given.clock);
    await stranger.accepted;
    await given.clock.advance(4_900);
    assert.equal(source.status().lastError, null);
    await given.clock.advance(100);
    const text =
      `UNAVAILABLE: the Workload API says nothing: check SPIFFE_ENDPOINT_SOCKET "${stranger.endpoint}", ` +
      "and that the agent behind it answers";
    assert.equal(source.status().lastError, text);
    await given.clock.advance(25_000);
    assert.equal(source.status().lastError, text, "asked anew, and told in the same words");
  },
);

Deno.test("watchSvids() tells the same fault once, with the setting", graceful, async () => {
  await using given = await setup();
  await using stranger = listenAsStranger(given.directory, "HTTP/1.1 400 Bad Request\r\n\r\n");
  const told: unknown[] = [];
  const logger = { ...silentLogger, warn: (_: string, more: unknown) => void told.push(more) };
  await using source = watchSvids({
    endpoint: stranger.endpoint,
    logger,
    clock: systemClock,
    random: () => 0,
  }, { signal: new AbortController().signal });
  await eventually(() => stranger.count() > 3, { what: "a fourth try" });
  assert.match(source.status().lastError ?? "", /^UNAVAILABLE: .*SPIFFE_ENDPOINT_SOCKET "unix:/);
  assert.equal(told.length, 1, JSON.stringify(told));
});

Deno.test("watchSvids() takes only the SPIFFE ID that is wanted", graceful, async () => {
  await using given = await setup();
  await using domain = await given.start();
  await using source = watchSvids({
    endpoint: await domain.endpointFor(ID),
    spiffeId: `spiffe://${TD}/other`,
    logger: silentLogger,
    clock: systemClock,
  }, { signal: new AbortController().signal });
  await eventually(() => source.status().lastError?.includes(`not "spiffe://${TD}/other"`), {
    what: "the complaint",
  });
  assert.equal(source.current(), null);
});

Deno.test(
  "watchSvids() ends ready() with the reason when it is closed or aborted",
  graceful,
  async () => {
    await using given = await setup();
    const stop = new AbortController();
    const source = watchSvids({
      endpoint: `unix:${given.directory}/none`,
      logger: silentLogger,
      clock: systemClock,
    }, { signal: stop.signal });
    const impatient = new AbortController();
    const waiting = assert.rejects(source.ready(impatient.signal), /enough/);
    impatient.abort(new Error("enough"));
    await waiting;
    const other = assert.rejects(source.ready(new AbortController().signal), /stop/);
    stop.abort(new Error("stop"));
    await other;
    await source[Symbol.asyncDispose]();
    assert.equal(source.status().state, "closed");
  },
);

Deno.test("watchSvids() refuses what is not a unix socket", () => {
  assert.throws(() => watch("tcp://127.0.0.1:1"), /set SPIFFE_ENDPOINT_SOCKET/);
});
