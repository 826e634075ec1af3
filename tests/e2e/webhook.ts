/**
 * The webhook's receiver and a real Gitea: its event of a queued job is believed with the secret that
 * Gitea was given, and not with another one.
 */
import assert from "node:assert/strict";
import { noRecorder } from "../../controller/recorder.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createWebhook, WEBHOOK_PATH } from "../../web/webhook.ts";
import { eventually } from "../support/eventually.ts";
import { createGiteaApi } from "../support/gitea_api.ts";
import { startPeers } from "../support/peers.ts";

const SECRET = "the-webhook-secret";
const WORKFLOW = `on: workflow_dispatch
jobs:
  work:
    runs-on: [self-hosted, pod]
    steps:
      - run: echo one
`;

/** Listens as the dashboard does; keeps what was answered and how often Gitea would be asked. */
function listen(secret: string) {
  const answers: number[] = [];
  const seen = { nudges: 0 };
  const webhook = createWebhook({
    secret: new Secret(secret),
    nudge: () => (seen.nudges++, true),
    recorder: noRecorder,
    clock: systemClock,
    logger: silentLogger,
  });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const answer = await webhook.respond(request, "request");
    answers.push(answer.status);
    return answer;
  });
  return {
    answers,
    seen,
    url: `http://127.0.0.1:${server.addr.port}${WEBHOOK_PATH}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

await using peers = await startPeers({ which: ["gitea"] });
const { admin, rootUrl: url, token } = peers.gitea;
const api = createGiteaApi({ url, user: admin.name, password: admin.password, token });
const repository = `${api.user}/hooked`;
await api.createRepository("hooked", { private: false });
await api.commit(repository, [{ path: ".gitea/workflows/work.yaml", content: WORKFLOW }]);

await using known = listen(SECRET);
await using stranger = listen("another secret");
for (const target of [known, stranger]) {
  await api.rest("POST", `/repos/${repository}/hooks`, {
    type: "gitea",
    active: true,
    events: ["workflow_job"],
    config: { url: target.url, content_type: "json", secret: SECRET },
  });
}
const started = performance.now();
await api.dispatch(repository, "work.yaml");
await eventually(() => known.answers.length > 0 && stranger.answers.length > 0, {
  what: "Gitea's events",
  timeoutMs: 15_000,
});
const heardMs = Math.round(performance.now() - started);
assert.deepEqual(known.answers, [202]);
assert.equal(known.seen.nudges, 1);
assert.deepEqual(stranger.answers, [403]);
assert.equal(stranger.seen.nudges, 0);
Deno.stdout.writeSync(
  new TextEncoder().encode(
    `ok a queued job is heard of in ${heardMs} ms; another secret is refused\n`,
  ),
);
