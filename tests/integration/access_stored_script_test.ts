import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createFakeActions } from "../fakes/actions.ts";
import { poison, poisoned } from "../fakes/poisoned_views.ts";
import { createFakeViews } from "../fakes/views.ts";
import { createTestWeb } from "../support/test_web.ts";

const PAGES = [
  "/",
  "/?list=waiting",
  "/assignments/gitea-task-803",
  "/assignments/gitea-task-799",
  "/assignments/gitea-task-803/release",
  "/assignments/gitea-task-812/cancel",
  "/executors",
  "/executors/ci-3fa9c1d27b-771/release",
  "/backends/pod",
  "/backends/vm",
  "/canary",
  "/leader",
  "/history",
  "/audit",
  "/operations/op-1",
  "/operations/op-2",
  "/health",
];

for (const language of ["en", "zh-CN"]) {
  Deno.test(`a script in any text from outside stays text on every page (${language})`, async () => {
    const clock = createFakeClock();
    const views = createFakeViews({ clock }, {});
    const actions = createFakeActions({ now: clock.now, find: (id) => poison(views.find(id)) });
    await using web = createTestWeb({ views: poisoned(views), actions, clock });
    for (const path of PAGES) {
      const headers = { "accept-language": language };
      const answer = await web.fetch(new Request(`http://localhost:8080${path}`, { headers }));
      assert.equal(answer.status, 200, path);
      const html = await answer.text();
      assert.match(html, /&lt;img src=x onerror=/, `${path} shows it`);
      assert.doesNotMatch(html, /<img|<script>|<\/script><script>d|onerror="d/i, path);
      assert.doesNotMatch(html, /(?:href|action|src)="?\s*javascript:/i, path);
      // Whatever was let through would still not run.
      assert.match(answer.headers.get("content-security-policy") ?? "", /script-src[^;]* 'nonce-/);
    }
  });
}

Deno.test("a script in any text from outside is data in the API, and never a page", async () => {
  const clock = createFakeClock();
  await using web = createTestWeb({ views: poisoned(createFakeViews({ clock }, {})), clock });
  for (const path of ["status", "assignments", "executors", "history", "audit", "operations"]) {
    const answer = await web.fetch(new Request(`http://localhost:8080/api/v1/${path}`));
    assert.match(answer.headers.get("content-type") ?? "", /^application\/json/, path);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff", path);
    assert.match(await answer.text(), /<img src=x/, path);
  }
});
