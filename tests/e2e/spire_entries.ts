/**
 * The SPIRE entry client and the Workload API client against a real SPIRE server and agent. Run by
 * itself, as root: `deno run -A tests/e2e/spire_entries.ts`.
 */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createSpireEntries } from "../../clients/spire/entries.ts";
import { watchSvids } from "../../clients/spiffe/workload_api.ts";
import { BackendError } from "../../controller/backend.ts";
import {
  assignmentIdOf,
  executorName,
  instanceOf,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { eventually } from "../support/eventually.ts";
import { startPeers } from "../support/peers.ts";

const OTHER_USER = 2001;
const call = { signal: AbortSignal.timeout(120_000) };
const say = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));

if (Deno.uid() !== 0) throw new Error("Test SPIRE entries: only root can act as other users");
await using peers = await startPeers({ which: ["spire"], say });
const { trustDomain, agentSocket, serverSocket, parentId } = peers.spire;
const instance = await instanceOf("uuid", "spire-test");
const nameOf = (digits: string) => {
  const id = parseTaskId(digits);
  if (id === undefined) throw new RangeError(`Make name: "${digits}" is no task id`);
  return executorName(instance, assignmentIdOf(id));
};
const idOf = (job: string) => `spiffe://${trustDomain}/ci/acme/app/${job}`;
const endpoint = `unix://${agentSocket}`;
using entries = createSpireEntries({
  adminSocket: `unix://${serverSocket}`,
  endpoint,
  parentId,
  instancePrefix: `gdr.${instance}`,
});
const watch = (spiffeId: string) =>
  watchSvids({ endpoint, spiffeId, logger: silentLogger, clock: systemClock }, call);

// Our own user: refused before the entry, served after it, refused after its end.
{
  await using source = watch(idOf("build"));
  await eventually(() => source.status().lastError?.includes("no identity issued"), {
    what: "the agent's refusal",
  });
  const started = performance.now();
  await entries.bind({ executor: nameOf("1"), userId: null, spiffeId: idOf("build") }, call);
  await entries.bind({ executor: nameOf("1"), userId: null, spiffeId: idOf("build") }, call);
  const svid = await source.ready(call.signal);
  say(`entry to SVID: ${Math.round(performance.now() - started)} ms`);
  assert.equal(svid.spiffeId, idOf("build"));
  const seconds = (svid.expiresAt - Date.now()) / 1000;
  assert.ok(seconds > 200 && seconds <= 300, `lifetime ${seconds} s`);
  assert.deepEqual(await entries.list(call), [nameOf("1")]);
  await entries.unbind(nameOf("1"), call);
  await eventually(() => source.status().state === "stale", { what: "the end of the identity" });
  await entries.unbind(nameOf("1"), call);
  assert.deepEqual(await entries.list(call), []);
}

// Another user gets its own identity, and only that one.
{
  await entries.bind({ executor: nameOf("2"), userId: OTHER_USER, spiffeId: idOf("test") }, call);
  const fetched = await eventually(async () => {
    const { success, stdout } = await new Deno.Command(`${peers.bin}/spire-agent`, {
      args: ["api", "fetch", "x509", "-socketPath", agentSocket, "-output", "json"],
      uid: OTHER_USER,
      stdout: "piped",
      stderr: "null",
    }).output();
    return success && new TextDecoder().decode(stdout);
  }, { what: "the other user's SVID", timeoutMs: 20_000, everyMs: 300 });
  assert.ok(fetched.includes(idOf("test")), fetched);
  await using ours = watch(idOf("test"));
  await eventually(() => ours.status().lastError !== null, { what: "our refusal" });
  assert.equal(ours.current(), null, "the identity belongs to the other user");
}

// The same user's next job with the same identity takes the leftover's place; another SPIFFE ID replaces.
await entries.bind({ executor: nameOf("3"), userId: OTHER_USER, spiffeId: idOf("test") }, call);
assert.deepEqual(await entries.list(call), [nameOf("3")]);
await entries.bind({ executor: nameOf("3"), userId: OTHER_USER, spiffeId: idOf("deploy") }, call);
assert.deepEqual(await entries.list(call), [nameOf("3")]);

// Entries of others are neither listed, nor deleted, nor taken over.
await peers.spire.server([
  ...["entry", "create", "-parentID", parentId, "-spiffeID", idOf("foreign")],
  ...["-selector", `unix:uid:${OTHER_USER}`],
]);
const foreign = { executor: nameOf("4"), userId: OTHER_USER, spiffeId: idOf("foreign") };
await assert.rejects(
  entries.bind(foreign, call),
  (error) => error instanceof BackendError && error.code === "conflict",
);
assert.deepEqual(await entries.list(call), [nameOf("3")]);
await entries.unbind(nameOf("3"), call);
assert.match(await peers.spire.server(["entry", "show", "-spiffeID", idOf("foreign")]), /Found 1/);
assert.match(await peers.spire.server(["entry", "show", "-spiffeID", idOf("deploy")]), /Found 0/);

// What SPIRE refuses, and a server that is not there, have names.
const wrong = { ...foreign, spiffeId: "spiffe://other.example/ci/a/b/c" };
await assert.rejects(
  entries.bind(wrong, call),
  (error) => error instanceof BackendError && error.code === "refused",
);
using away = createSpireEntries({
  adminSocket: `${peers.folder}/nobody.sock`,
  endpoint,
  parentId,
  instancePrefix: "gdr.x",
});
await assert.rejects(
  away.list(call),
  (error) => error instanceof BackendError && error.code === "unavailable",
);
say("SPIRE entries: all assertions passed");
