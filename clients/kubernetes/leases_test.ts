import assert from "node:assert/strict";
import { LeaseError } from "../../controller/leadership/lease.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { startApiEndpoint } from "../../tests/support/api_endpoint.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { createKubernetes } from "./client.ts";
import { createLeaseStore } from "./leases.ts";

const LEASE = { metadata: { resourceVersion: "7" }, spec: { holderIdentity: "a" } };

Deno.test("read() gives silent connections up before an elector's own patience ends", async () => {
  await using api = await startApiEndpoint();
  const clock = createFakeClock();
  await using kubernetes = await createKubernetes(api.access, { clock });
  await using store = createLeaseStore(kubernetes, {
    namespace: "n",
    name: "l",
    logger: silentLogger,
  });
  const read = async () => {
    using patience = clock.timeout(5_000); // Half of the renew deadline.
    return await store.read({ signal: patience.signal });
  };
  const together = Promise.withResolvers<void>();
  api.answer(async () => {
    await together.promise;
    return Response.json(LEASE);
  });
  const reads = [read(), read(), read()];
  await eventually(() => api.asked.length === 3, { what: "three connections" });
  together.resolve();
  await Promise.all(reads);
  const old = new Set(api.asked.map(({ connection }) => connection));

  const silence = Promise.withResolvers<void>();
  api.answer(async () => {
    await silence.promise;
    return Response.json(LEASE);
  });
  const late = read().then(() => assert.fail("it was answered"), (error) => error);
  await eventually(() => api.asked.length === 4, { what: "the request without answer" });
  await clock.advance(5_000);
  const error = await late;
  assert.ok(error instanceof LeaseError, `no LeaseError: ${error}`);
  assert.equal(error.code, "unavailable");
  api.answer(() => Response.json(LEASE));
  assert.equal((await read())?.record.holder, "a");
  assert.equal(old.has(api.asked.at(-1)?.connection ?? 0), false);
  silence.resolve();
});
