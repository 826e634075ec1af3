/** A bug that somebody might write, and the test that must notice it. */
export interface Mutation {
  readonly name: string;
  /** Below the root of the repository. */
  readonly file: string;
  /** Stands in `file` exactly once, and is replaced by `after`. */
  readonly before: string;
  readonly after: string;
  readonly test: { readonly file: string; readonly name: string };
}

/** The ten bugs that must never pass. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "mutations: ack before the claim is sure",
    file: "controller/model/decide_making.ts",
    before: `effects: [journal("runner_claimed")],`,
    after: `effects: [journal("runner_claimed"), { kind: "ack" }],`,
    test: {
      file: "controller/model/decide_properties_test.ts",
      name: "decide() acknowledges only what the runner holds or Gitea was told",
    },
  },
  {
    name: "mutations: offset by one",
    file: "facade/offsets.ts",
    before: "return row + offset;",
    after: "return row + offset + 1n;",
    test: {
      file: "facade/relay_test.ts",
      name: "updateLog() shifts rows by the offset for any batches, repeats and gaps",
    },
  },
  {
    name: "mutations: stale epoch accepted",
    file: "clients/nats/records.ts",
    before: "if (record.epoch >= newest) return;",
    after: "if (record.epoch <= newest) return;",
    test: {
      file: "tests/contract/records_nats_test.ts",
      name: "an older epoch's write is refused for good",
    },
  },
  {
    name: "mutations: unsigned object recovered",
    file: "controller/recovery_facts.ts",
    before: "return await ownership.verify(executor.name, executor.metadata, record.nonce)",
    after: `return record.nonce !== ""`,
    test: {
      file: "controller/recovery_test.ts",
      name: "recover() gives no identity to an executor whose signature is missing",
    },
  },
  {
    name: "mutations: slot freed with a live executor",
    file: "controller/model/state.ts",
    before: `return state.presence === "alive";`,
    after: `return state.kind === "settling" && state.presence === "alive";`,
    test: {
      file: "tests/integration/engine_end_test.ts",
      name: "engine deletes an executor that lives on after its job, and keeps its slot",
    },
  },
  {
    name: "mutations: heartbeat without steps",
    file: "controller/inquiry.ts",
    before: "create(TaskStateSchema, { id: BigInt(entry.info.taskId), steps })",
    after: "create(TaskStateSchema, { id: BigInt(entry.info.taskId) })",
    test: {
      file: "controller/inquiry_test.ts",
      name: "consider() asks with all steps as they are",
    },
  },
  {
    name: "mutations: cancel ignored while stored",
    file: "controller/model/decide.ts",
    before: `    case "cancelled":\n      return isBeforeClaim(state)`,
    after: `    case "cancelled":\n      return isBeforeClaim(state) && state.kind !== "stored"`,
    test: {
      file: "tests/integration/engine_end_test.ts",
      name: "engine hears of the cancel of a job that waits for its slot",
    },
  },
  {
    name: "mutations: duplicate publish accepted",
    file: "clients/nats/queue.ts",
    before: "headers: { ...headers, [MESSAGE_ID]:",
    after: `headers: { ...headers, "Gdr-Message-Id":`,
    test: {
      file: "tests/contract/queue_nats_test.ts",
      name: "publish() stores once and says so",
    },
  },
  {
    name: "mutations: terminal before Gitea accepted",
    file: "facade/state_relay.ts",
    before: "const answer = await forwardState(judged, outputs, signal);\n",
    after: `settle(fromWireResult(verdict.result) ?? "failure");\n` +
      "      const answer = await forwardState(judged, outputs, signal);\n",
    test: {
      file: "facade/relay_test.ts",
      name: "a final state that Gitea did not take is tried again without a second reason row",
    },
  },
  {
    name: "mutations: secret in a log field",
    file: "facade/fetch_task.ts",
    before: `logger.info("task handed over", { assignment: caller.assignment,`,
    after:
      `logger.info("task handed over", { seen: now.task?.secrets, assignment: caller.assignment,`,
    test: {
      file: "facade/secrets_in_logs_test.ts",
      name: "the facade logs no secret of a job",
    },
  },
];
