import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { Secret } from "../lib/secret.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { createTestWeb } from "../tests/support/test_web.ts";
import { createWebhook, WEBHOOK_PATH } from "./webhook.ts";

const SECRET = "hook-secret-value";
const QUEUED = JSON.stringify({ action: "queued", workflow_job: { id: 7 } });

function setup(options: { readonly nudge?: () => boolean } = {}) {
  const clock = createFakeClock();
  const said: string[] = [];
  const results: string[] = [];
  let nudges = 0;
  const note = (message: string, fields: unknown) => void said.push(message + Deno.inspect(fields));
  const logger = { ...silentLogger, warn: note, debug: note, child: () => logger };
  const web = createTestWeb({
    views: createFakeViews({ clock }),
    clock,
    logger,
    webhook: createWebhook({
      secret: new Secret(SECRET),
      nudge: () => (nudges++, options.nudge?.() ?? true),
      recorder: { webhook: (result) => void results.push(result) },
      clock,
      logger,
    }),
  });
  return {
    clock,
    said,
    results,
    nudges: () => nudges,
    send: async (body: BodyInit, headers: Record<string, string>, method = "POST") =>
      await web.fetch(
        new Request(`http://runner.ci.svc:8080${WEBHOOK_PATH}`, {
          method,
          headers: { "x-gitea-event": "workflow_job", ...headers },
          ...method === "GET" ? {} : { body },
        }),
      ),
    [Symbol.asyncDispose]: () => web[Symbol.asyncDispose](),
  };
}

function signed(body: string, secret = SECRET): Record<string, string> {
  return { "x-gitea-signature": createHmac("sha256", secret).update(body).digest("hex") };
}

Deno.test("POST /webhooks/gitea asks Gitea now for a queued job, whatever name we are called by", async () => {
  await using t = setup();
  const answer = await t.send(QUEUED, signed(QUEUED));
  assert.equal(answer.status, 202);
  assert.equal(t.nudges(), 1);
  assert.deepEqual(t.results, ["asked"]);
  assert.ok(answer.headers.get("x-request-id"));
});

Deno.test("POST /webhooks/gitea asks nothing for other events and other actions", async () => {
  await using t = setup();
  const other = JSON.stringify({ action: "completed" });
  for (const [body, event] of [[other, "workflow_job"], [QUEUED, "push"], ["[", "workflow_job"]]) {
    const headers = { ...signed(body ?? ""), "x-gitea-event": event ?? "" };
    assert.equal((await t.send(body ?? "", headers)).status, 204);
  }
  assert.equal(t.nudges(), 0);
  assert.deepEqual(t.results, ["ignored", "ignored", "ignored"]);
});

Deno.test("POST /webhooks/gitea refuses what is not signed with our secret, and tells no secret", async () => {
  await using t = setup();
  const forged: Record<string, string>[] = [
    {},
    { "x-gitea-signature": "" },
    { "x-gitea-signature": "zz" },
    signed(QUEUED, "another"),
    signed(QUEUED + " "),
  ];
  for (const headers of forged) {
    const answer = await t.send(QUEUED, headers);
    assert.equal(answer.status, 403);
    assert.match((await answer.json()).detail, /GITEA_WEBHOOK_SECRET/);
  }
  assert.equal(t.nudges(), 0);
  assert.equal(t.said.length, forged.length);
  assert.deepEqual(t.results, forged.map(() => "forged"));
  assert.ok(!t.said.join().includes(SECRET));
});

Deno.test("POST /webhooks/gitea bounds size and time of a body", async () => {
  await using t = setup();
  const large = await t.send("x".repeat(1_048_577), {});
  assert.equal(large.status, 413);
  await large.body?.cancel();
  const slow = t.send(new ReadableStream({ pull: () => new Promise(() => {}) }), {});
  await t.clock.advance(10_000);
  const answer = await slow;
  assert.equal(answer.status, 408);
  assert.match((await answer.json()).detail, /within 10 s/);
  assert.deepEqual(t.results, ["unreadable", "unreadable"]);
});

Deno.test("POST /webhooks/gitea asks for the body again when that was cut off", async () => {
  await using t = setup();
  const cut = new ReadableStream({ start: (controller) => controller.error(new Error("cut")) });
  const answer = await t.send(cut, signed(QUEUED));
  assert.equal(answer.status, 400);
  assert.match((await answer.json()).detail, /cut off/);
});

Deno.test("POST /webhooks/gitea blames nobody's body for a fault of ours", async () => {
  await using t = setup({
    nudge() {
      throw new TypeError("a fault of ours");
    },
  });
  const answer = await t.send(QUEUED, signed(QUEUED));
  assert.equal(answer.status, 500);
  assert.doesNotMatch(await answer.text(), /cut off|a fault of ours/);
});

Deno.test("POST /webhooks/gitea says so where another replica leads", async () => {
  await using t = setup({ nudge: () => false });
  const answer = await t.send(QUEUED, signed(QUEUED));
  assert.equal(answer.status, 503);
  assert.match((await answer.json()).detail, /leader polls anyway/);
  assert.deepEqual(t.results, ["not_leading"]);
});

Deno.test("/webhooks/gitea takes POST alone", async () => {
  await using t = setup();
  const answer = await t.send("", {}, "GET");
  assert.equal(answer.status, 405);
  assert.equal(answer.headers.get("allow"), "POST");
  await answer.body?.cancel();
});
