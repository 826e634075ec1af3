import assert from "node:assert/strict";
import { aborted } from "../../lib/abortable.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { X509SVIDResponseSchema } from "../../proto/gen/workload/workload_pb.ts";
import { create } from "../../proto/runtime.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { serveUnix, streamHandler } from "../grpc/server.ts";
import { createAuthority } from "../x509/trust_domain.ts";
import { watchSvids } from "./workload_api.ts";
import { fetchX509Svid } from "./workload_protocol.ts";

const ID = "spiffe://test.example/ci/acme/app/build";
const HOUR_MS = 3_600_000;

async function setup() {
  const directory = await Deno.makeTempDir();
  const clock = createFakeClock(Date.now());
  const authority = await createAuthority("test.example", clock.now());
  const path = `${directory}/api.sock`;
  let asked = 0;
  return {
    path,
    /** Streams that agents were asked for. */
    asked: () => asked,
    clock,
    /** An agent whose streams are silent after so many SVIDs. */
    serve: (svids: number) =>
      serveUnix(path, [streamHandler(fetchX509Svid, async function* (_request, { signal }) {
        asked++;
        for (let i = 0; i < svids; i++) {
          const svid = await authority.issue({ uris: [ID], now: clock.now(), ttlMs: HOUR_MS });
          yield create(X509SVIDResponseSchema, {
            svids: [{
              spiffeId: ID,
              x509Svid: svid.certificateDer,
              x509SvidKey: svid.keyDer,
              bundle: authority.bundleDer,
            }],
          });
        }
        await aborted(signal);
      })]),
    watch: () =>
      watchSvids({ endpoint: `unix://${path}`, logger: silentLogger, clock, random: () => 0 }, {
        signal: new AbortController().signal,
      }),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

Deno.test("watchSvids() leaves an agent that hangs for the next one on that socket", async () => {
  await using given = await setup();
  await using _hung = given.serve(0);
  await using source = given.watch();
  await eventually(() => given.asked() === 1, { what: "a stream" });
  await Deno.remove(given.path);
  await using _next = given.serve(1);
  await eventually(async () => {
    await given.clock.advance(1_000);
    return source.current() ?? undefined;
  }, { what: "the SVID of the other agent" });
});

Deno.test("watchSvids() leaves an agent that brings no new SVID before the last one has expired", async () => {
  await using given = await setup();
  await using _hung = given.serve(1);
  await using source = given.watch();
  const first = await eventually(() => source.current() ?? undefined, { what: "the first SVID" });
  await Deno.remove(given.path);
  await using _next = given.serve(1);
  await given.clock.advance(HOUR_MS - 2_000);
  assert.deepEqual([source.status().state, source.current()], ["live", first]);
  await eventually(async () => {
    await given.clock.advance(1_000);
    return source.current() !== first;
  }, { what: "the SVID of the other agent" });
  assert.equal(source.status().state, "live");
});
