import assert from "node:assert/strict";
import type { SourceView } from "../controller/views/views.ts";
import { recoveryDetail } from "./pages.ts";

const UP: SourceView = { state: "up", since: null, ageMs: 0, lastError: null };
const READ = "executors and stored tasks are being read";

Deno.test("recoveryDetail() names the server that holds the start up, and why", () => {
  const detail = (opensandbox: SourceView) =>
    recoveryDetail({
      all: () => ({ gitea: UP, nats: UP, spire: UP, kubernetes: UP, opensandbox }),
    });
  assert.equal(detail(UP), READ);
  assert.equal(
    detail({ ...UP, state: "down", lastError: "check OPENSANDBOX_API_KEY" }),
    `${READ}; opensandbox is down (check OPENSANDBOX_API_KEY)`,
  );
});
