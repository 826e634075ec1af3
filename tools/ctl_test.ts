import assert from "node:assert/strict";
import type { Action } from "../controller/actions/action_kinds.ts";
import type {
  ActionOutcome,
  ActionRequest,
  Actions,
  Refusal,
} from "../controller/actions/actions.ts";
import { previewRelease } from "../controller/actions/release_preview.ts";
import type { OperationView } from "../controller/views/views.ts";
import { untilAborted } from "../lib/abortable.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { idOf } from "../tests/contract/queue_suite.ts";
import { operationsOf } from "../tests/fakes/sample_pages.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { createLedgerWorld, infoOf } from "../tests/support/ledger_world.ts";
import { runCtl } from "./ctl.ts";
import { table } from "./ctl/render.ts";
import { createTestAccess, tokenOf } from "../tests/support/test_access.ts";
import { createTestWeb } from "../tests/support/test_web.ts";

const URL_OF = "http://localhost:8080";
const ENTRY = createLedgerWorld().ledger.add(infoOf(799, { job: "b\x1b[31muild" }), {
  kind: "stored",
}, 0);

interface Setup {
  /** The dashboard asks who is there. */
  readonly guarded?: boolean;
  readonly outcome?: ActionOutcome;
  /** What a person answers. */
  readonly answers?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function setup({ guarded, outcome, answers, env = {} }: Setup = {}) {
  const clock = createFakeClock();
  const calls: { readonly action: Action; readonly request: ActionRequest }[] = [];
  const operation = operationsOf(clock.now())[2] ?? assert.fail();
  const actions: Actions = {
    act(action, request) {
      calls.push({ action, request });
      return Promise.resolve(outcome ?? { kind: "done", operation });
    },
    preview: (id, tier) => id === ENTRY.info.id ? previewRelease(ENTRY, tier) : undefined,
    tagOf: () => null,
    refused() {},
  };
  const web = createTestWeb({
    views: createFakeViews({ clock }, {}),
    actions,
    clock,
    ...guarded === true ? { access: createTestAccess(clock) } : {},
  });
  const requests: Request[] = [];
  const left = [...answers ?? []];
  /** Runs the tool; what it prints and its exit code. */
  const ctl = async (...args: string[]) => {
    let [out, err] = ["", ""];
    const code = await runCtl(args, {
      env: { ADMIN_URL: URL_OF, ...env },
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      ask: answers === undefined ? null : (question) => {
        out += `${question}\n`;
        return left.shift() ?? null;
      },
      signal: new AbortController().signal,
      clock,
      fetch: async (input, init) => {
        const request = new Request(input, init);
        requests.push(request.clone());
        return await web.fetch(request);
      },
    });
    return { code, out, err };
  };
  return { ctl, calls, clock, requests, [Symbol.asyncDispose]: () => web[Symbol.asyncDispose]() };
}

Deno.test("every read command prints something for people, and the API's JSON with --json", async () => {
  await using t = setup();
  const lines = [
    ["status"],
    ["backends"],
    ["assignments", "--state", "parked", "--limit", "5"],
    ["assignment", "799"],
    ["executors", "--backend", "pod"],
    ["operations", "--state", "running"],
    ["operation", "op-1"],
    ["audit", "--result", "refused"],
    ["history", "--backend", "vm"],
  ];
  for (const line of lines) {
    const { code, out, err } = await t.ctl(...line);
    assert.deepEqual([code, err], [0, ""], line.join(" "));
    assert.ok(out.endsWith("\n") && out.trim() !== "", line.join(" "));
    assert.ok(!STEERING.test(out), `${line.join(" ")}: ${JSON.stringify(out)}`);
    const json = await t.ctl(...line, "--json");
    assert.equal(json.code, 0);
    assert.equal(typeof JSON.parse(json.out), "object");
  }
});

Deno.test("audit says what changed in words, not in JSON", async () => {
  await using t = setup();
  const { out } = await t.ctl("audit");
  assert.match(out, /->/);
  assert.doesNotMatch(out, /[{}]/);
});

Deno.test("a table shows its last cell whole: what to do stands at its end", () => {
  const error = `${"x".repeat(200)}: check OPENSANDBOX_API_KEY`;
  assert.ok(table(["NAME", "LAST ERROR"], [["opensandbox", error]]).endsWith(`${error}\n`));
});

Deno.test("a command names the arguments that it lacks, and the backends there are", async () => {
  await using t = setup();
  const lacking = await t.ctl("capacity", "pod");
  assert.equal(lacking.code, 2);
  assert.match(lacking.err, /^Give "capacity" all it needs: BACKEND SLOTS\|default\n/);
  const unknown = await t.ctl("cordon", "nope");
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /^Choose a backend, pod or vm: there is no "nope"\n/);
});

/** What may steer a terminal: controls other than the line feed. */
const STEERING = /(?!\n)\p{Cc}/u;

const ID = idOf(799);
const ACTIONS: readonly (readonly [readonly string[], Action])[] = [
  [["cordon", "pod"], { kind: "cordon", backend: "pod" }],
  [["drain", "pod"], { kind: "drain", backend: "pod", hold: false, deadline: null }],
  [["drain", "vm", "--hold", "--deadline", "30m"], {
    kind: "drain",
    backend: "vm",
    hold: true,
    deadline: { kind: "within", ms: 1_800_000 },
  }],
  [["drain", "vm", "--deadline", "2027-01-15T08:00:00Z"], {
    kind: "drain",
    backend: "vm",
    hold: false,
    deadline: { kind: "at", at: Date.UTC(2027, 0, 15, 8) },
  }],
  [["resume", "pod"], { kind: "resume", backend: "pod" }],
  [["capacity", "pod", "0"], { kind: "capacity", backend: "pod", value: 0 }],
  [["capacity", "pod", "default"], { kind: "capacity", backend: "pod", value: null }],
  [["label", "vm", "vm-dev"], { kind: "label", backend: "vm", value: "vm-dev" }],
  [["label", "vm", "default"], { kind: "label", backend: "vm", value: null }],
  [["cancel", "799"], { kind: "cancel", id: ID }],
  [["retry", ID], { kind: "retry", id: ID }],
  [["undo", "op-1"], { kind: "undo", operation: "op-1" }],
  [["step-down"], { kind: "step-down" }],
];

Deno.test("every action command asks for its action, with note and key", async () => {
  await using t = setup();
  for (const [line, action] of ACTIONS) {
    const { code, out, err } = await t.ctl(...line, "--note", "kernel update");
    assert.deepEqual([code, err], [0, ""], line.join(" "));
    assert.match(out, /^op-3 {2}capacity vm {2}done 1\/1\n$/);
    const { request, action: asked } = t.calls.at(-1) ?? assert.fail();
    assert.deepEqual(asked, action);
    assert.equal(request.note, "kernel update");
    assert.match(request.key ?? "", /^[0-9a-f-]{36}$/);
  }
  await t.ctl("cordon", "pod", "--key", "mine", "--if-match", '"t"');
  const { request } = t.calls.at(-1) ?? assert.fail();
  assert.deepEqual([request.key, request.ifMatch], ["mine", '"t"']);
});

Deno.test("release says what it will do before it asks, and does nothing without a yes", async () => {
  await using t = setup({ answers: ["no", "yes", ID] });
  const no = await t.ctl("release", "799", "--tier", "forced");
  assert.equal(no.code, 3);
  assert.match(
    no.out,
    /^release \(forced\) of gitea-task-799: o\/r b\^\[\[31muild, stored\n {2}- Job/,
  );
  assert.match(no.out, /Nothing was done\.\n$/);
  assert.equal(t.calls.length, 0);
  assert.equal((await t.ctl("release", "799", "--tier", "forced")).code, 0);
  assert.equal((await t.ctl("release", "799", "--tier", "forget")).code, 0);
  assert.deepEqual(t.calls.map(({ action }) => action), [
    { kind: "release", id: ID, tier: "forced" },
    { kind: "release", id: ID, tier: "forget" },
  ]);
  // What was shown is what is done, or nothing.
  assert.ok(
    t.calls.every(({ request }) => request.ifMatch === previewRelease(ENTRY, "forced").tag),
  );
});

Deno.test("release presets nothing: no tier, nobody to ask, no confirmation are refused", async () => {
  await using t = setup();
  assert.equal((await t.ctl("release", "799")).code, 2);
  assert.equal((await t.ctl("release", "799", "--tier", "forced")).code, 2);
  assert.equal((await t.ctl("release", "799", "--tier", "forget", "--yes")).code, 2);
  assert.equal(t.calls.length, 0);
  const line = ["release", "799", "--tier", "forget", "--yes", "--confirm", ID];
  assert.equal((await t.ctl(...line)).code, 0);
  assert.equal((await t.ctl("release", "800", "--tier", "forced", "--yes")).code, 4);
  const executor = ["release-executor", "ci-nobody", "--tier", "forced"];
  assert.equal((await t.ctl(...executor)).code, 2);
  assert.equal((await t.ctl(...executor, "--yes")).code, 4);
});

Deno.test("exit codes tell refusals apart, and --json prints the problem", async () => {
  const cases: readonly (readonly [Refusal, number])[] = [
    [{ kind: "absent", detail: "Look for another one" }, 4],
    [{ kind: "conflict", detail: "It is cordoned already", current: null }, 3],
    [{ kind: "stale", detail: "Look again", current: null }, 3],
    [{ kind: "differs", detail: "Use another key" }, 3],
  ];
  for (const [outcome, expected] of cases) {
    await using t = setup({ outcome });
    const { code, out, err } = await t.ctl("cordon", "pod");
    assert.deepEqual([code, out], [expected, ""]);
    assert.ok(err.startsWith(outcome.detail));
    const json = await t.ctl("cordon", "pod", "--json");
    assert.equal(json.code, expected);
    assert.equal(JSON.parse(json.out).detail, outcome.detail);
  }
  await using t = setup();
  for (
    const line of [
      [],
      ["hello"],
      ["cordon"],
      ["cordon", "pod", "--hard"],
      ["capacity", "pod", "x"],
      [
        "assignment",
        "abc",
      ],
      ["drain", "pod", "--deadline", "soon"],
      ["completion", "tcsh"],
      ["status", "--url", "ftp://x"],
      ["cordon", "pod", "--tier", "forget"],
      ["resume", "pod", "--yes"],
      ["backends", "--limit", "1"],
      ["cordon", "pod", "vm"],
      ["operation", "op-3", "--wait", "--timeout", "5min"],
      ["drain", "vm", "--wait", "--timeout", "5min"],
    ]
  ) {
    const { code, err } = await t.ctl(...line);
    assert.equal(code, 2, line.join(" "));
    assert.deepEqual(t.calls, []);
    assert.match(err, /See: deno task ctl --help/);
  }
  assert.equal((await t.ctl("operation", "op-99")).code, 4);
  const help = await t.ctl("--help");
  assert.deepEqual([help.code, help.err], [0, ""]);
  assert.match(help.out, /Exit codes: 0 done or begun/);
  assert.deepEqual(await t.ctl("help"), help);
});

Deno.test("503 and a lost connection are tried again with the same key, not for ever", async () => {
  await using t = setup({ outcome: { kind: "unavailable", detail: 'Ask the leader: it is "b"' } });
  const running = t.ctl("cordon", "pod");
  for (let n = 0; n < 8; n++) await t.clock.advance(1_000);
  const { code, err } = await running;
  assert.equal(code, 1);
  assert.match(err, /^Ask the leader: it is "b" \(503\)/);
  assert.equal(t.calls.length, 4);
  assert.equal(new Set(t.calls.map(({ request }) => request.key)).size, 1);

  const clock = createFakeClock();
  let tries = 0;
  let said = "";
  const lost = runCtl(["status"], {
    env: {},
    out: () => {},
    err: (text) => void (said += text),
    ask: null,
    signal: new AbortController().signal,
    clock,
    fetch: () => {
      tries++;
      return Promise.reject(new TypeError("connection refused"));
    },
  });
  for (let n = 0; n < 8; n++) await clock.advance(1_000);
  assert.deepEqual([await lost, tries], [1, 4]);
  assert.match(said, /^Ask "http:\/\/127\.0\.0\.1:8080": connection refused; set ADMIN_URL/);
});

Deno.test("who is not known is told where ctl takes its token from, and who is known is not", async () => {
  await using nobody = setup({ guarded: true });
  const refused = await nobody.ctl("status");
  assert.equal(refused.code, 5);
  assert.match(refused.err, /^Sign in .* \(401\)\nctl sends the token in ADMIN_TOKEN, or /);
  await using viewer = setup({ guarded: true, env: { ADMIN_TOKEN: tokenOf("viewer") } });
  const known = await viewer.ctl("cordon", "pod");
  assert.equal(known.code, 5);
  assert.doesNotMatch(known.err, /ADMIN_TOKEN/);
});

Deno.test("the token goes with every request, and into no output", async () => {
  await using t = setup({ env: { ADMIN_TOKEN: "secret-token-1" } });
  const { out, err } = await t.ctl("status");
  assert.equal(t.requests[0]?.headers.get("authorization"), "Bearer secret-token-1");
  assert.ok(!(out + err).includes("secret-token-1"));
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "from-file\n");
  await using other = setup({ env: { ADMIN_TOKEN_FILE: file } });
  await other.ctl("status");
  assert.equal(other.requests[0]?.headers.get("authorization"), "Bearer from-file");
  await Deno.remove(file);
  await using none = setup({ env: { ADMIN_TOKEN_FILE: file } });
  assert.equal((await none.ctl("status")).code, 2);
});

Deno.test("--wait follows an operation to its end, or says that it did not end in time", async () => {
  const running: OperationView = operationsOf(0)[0] ?? assert.fail();
  const clock = createFakeClock();
  const answers = [
    running,
    { ...running, progress: { done: 4, total: 5 } },
    { ...running, state: "done", progress: { done: 5, total: 5 } },
  ];
  const run = async (args: readonly string[], states: readonly unknown[]) => {
    let out = "";
    let at = 0;
    const code = runCtl(args, {
      env: {},
      out: (text) => void (out += text),
      err: (text) => void (out += text),
      ask: null,
      signal: new AbortController().signal,
      clock,
      fetch: () => Promise.resolve(Response.json(states[Math.min(at++, states.length - 1)])),
    });
    for (let n = 0; n < 20; n++) await clock.advance(500);
    return { code: await code, out };
  };
  const done = await run(["drain", "vm", "--wait"], answers);
  assert.equal(done.code, 0);
  assert.deepEqual(done.out.trim().split("\n").map((line) => line.split("  ")[2]), [
    "running 3/5",
    "running 4/5",
    "done 5/5",
  ]);
  const failed = { ...running, state: "failed", error: "nobody knows" };
  assert.equal((await run(["drain", "vm", "--wait"], [running, failed])).code, 6);
  assert.equal((await run(["drain", "vm", "--wait", "--timeout", "2s"], [running])).code, 6);
});

Deno.test("--wait outlasts a dashboard that is away, and says so once", async () => {
  const running: OperationView = operationsOf(0)[0] ?? assert.fail();
  const clock = createFakeClock();
  let [said, asked] = ["", 0];
  const standby = { status: 503, detail: 'Ask the leader: it is "b"' };
  const code = runCtl(["drain", "vm", "--wait", "--json"], {
    env: {},
    out() {},
    err: (text) => void (said += text),
    ask: null,
    signal: new AbortController().signal,
    clock,
    fetch() {
      asked++;
      if (asked === 1 || asked === 30) return Promise.resolve(Response.json(running));
      if (asked > 40) return Promise.resolve(Response.json({ ...running, state: "done" }));
      return asked % 2 === 0
        ? Promise.reject(new TypeError("connection refused"))
        : Promise.resolve(Response.json(standby, { status: 503 }));
    },
  });
  for (let n = 0; n < 120; n++) await clock.advance(500);
  assert.equal(await code, 0);
  assert.equal(said.match(/; waiting for it\n/g)?.length, 2, said);
  assert.match(said, /connection refused|Ask the leader: it is "b" \(503\)/);
});

Deno.test("--wait ends with --timeout although an answer hangs", async () => {
  const running: OperationView = operationsOf(0)[0] ?? assert.fail();
  const clock = createFakeClock();
  let asked = 0;
  const code = runCtl(["drain", "vm", "--wait", "--timeout", "5s"], {
    env: {},
    out() {},
    err() {},
    ask: null,
    signal: new AbortController().signal,
    clock,
    fetch: (_url, init) =>
      asked++ === 0
        ? Promise.resolve(Response.json(running))
        : untilAborted(init?.signal ?? AbortSignal.abort()),
  });
  let ended: number | undefined;
  const ending = code.then((exit) => ended = exit);
  for (let n = 0; n < 11; n++) await clock.advance(500);
  assert.equal(ended, 6);
  await ending;
});

Deno.test("--wait waits no longer than --timeout although the wall clock is set back", async () => {
  const running: OperationView = operationsOf(0)[0] ?? assert.fail();
  const clock = createFakeClock();
  const begun = clock.now();
  const code = runCtl(["drain", "vm", "--wait", "--timeout", "2s", "--json"], {
    env: {},
    out() {},
    err() {},
    ask: null,
    signal: new AbortController().signal,
    // Set back again and again, as by a machine whose time runs wild.
    clock: { ...clock, now: () => begun },
    fetch: () => Promise.resolve(Response.json(running)),
  });
  let ended: number | undefined;
  const ending = code.then((exit) => ended = exit);
  for (let n = 0; n < 20; n++) await clock.advance(500);
  assert.equal(ended, 6);
  await ending;
});

Deno.test("completion is a script that its shell takes", async () => {
  await using t = setup();
  const bash = await t.ctl("completion", "bash");
  assert.match(bash.out, /complete -F _gdr_ctl gdr-ctl/);
  assert.match(bash.out, /step-down/);
  const script = `${bash.out}
COMP_WORDS=(gdr-ctl dr); COMP_CWORD=1; _gdr_ctl; echo "\${COMPREPLY[@]}"
COMP_WORDS=(gdr-ctl drain ""); COMP_CWORD=2; _gdr_ctl; echo "\${COMPREPLY[@]}"
COMP_WORDS=(gdr-ctl release 1 --tier ""); COMP_CWORD=4; _gdr_ctl; echo "\${COMPREPLY[@]}"
COMP_WORDS=(gdr-ctl label vm vm); COMP_CWORD=3; _gdr_ctl; echo "\${COMPREPLY[@]}"
`;
  const { stdout, stderr } = await new Deno.Command("bash", { args: ["-c", script] }).output();
  assert.equal(new TextDecoder().decode(stderr), "");
  assert.deepEqual(new TextDecoder().decode(stdout).trim().split("\n"), [
    "drain",
    "pod vm",
    "graceful forced forget",
    "vm vm-dev",
  ]);
  assert.match((await t.ctl("completion", "zsh")).out, /^#compdef gdr-ctl\n/);
  assert.match(
    (await t.ctl("completion", "fish")).out,
    /complete -c gdr-ctl -n __fish_use_subcommand/,
  );
});
