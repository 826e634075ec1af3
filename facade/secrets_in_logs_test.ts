import assert from "node:assert/strict";
import { create } from "../proto/runtime.ts";
import { LogRowSchema, Result, TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import { add } from "../tests/fakes/gitea_port.ts";
import {
  createRecordedLogger,
  JOB_ID,
  sampleInfo,
  setupFacade,
} from "../tests/support/facade_setup.ts";
import { issueSvid } from "../tests/support/svids.ts";
import { sampleTask } from "../tests/support/tasks.ts";

Deno.test("the facade logs no secret of a job, whatever the fields are called", async () => {
  const logger = createRecordedLogger();
  await using given = await setupFacade({ deps: { logger } });
  const info = sampleInfo();
  const planted = "planted-4f1c-value";
  const task = sampleTask({
    id: 11n,
    secrets: { DEPLOY: planted },
    context: { gitea_runtime_token: `${planted}-runtime`, token: `${planted}-job` },
  });
  given.facade.offers.offer(info, task);
  given.gitea.tasks.set(11n, add());
  const svid = await issueSvid(given.authority, [JOB_ID]);
  const client = given.runner(svid, given.headersOf(info));
  const other = given.runner(svid, given.headersOf(info, "f".repeat(32)));
  const rows = [create(LogRowSchema, { content: planted })];

  assert.equal((await client.fetchTask({})).task?.secrets["DEPLOY"], planted);
  await assert.rejects(other.fetchTask({}));
  await client.updateLog({ taskId: 11n, index: 0n, rows, noMore: true });
  await client.updateTask({ state: create(TaskStateSchema, { id: 11n, result: Result.SUCCESS }) });
  await assert.rejects(client.register({ name: planted, token: planted }));
  given.facade.offers.remove(info.id);
  await assert.rejects(client.fetchTask({}));

  const said = logger.records.join("\n");
  assert.match(said, /task handed over/);
  assert.ok(!said.includes(planted), "a secret, a token or a row of the job's log");
  assert.ok(!said.includes(given.capabilities.issue(info.id)), "the capability");
});
