import assert from "node:assert/strict";
import { demandApi } from "../../clients/nats/api.ts";
import { register } from "../../clients/gitea/register.ts";
import { Secret } from "../../lib/secret.ts";
import {
  type ControllerPlace,
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { makeCertificatePem } from "../support/certificate_pem.ts";
import { PRODUCTION } from "../support/config_env.ts";
import { eventually } from "../support/eventually.ts";
import { startNats } from "../support/nats.ts";
import { connectTo } from "../support/nats_world.ts";
import { type RunningProcess, startProcess } from "../support/process.ts";

const UUID = "0d1f4f9e-7f0b-4a53-9d61-3f6d6a3f3c11";
/** What the forge has queued when it starts for the first time. */
const SAMPLE_JOBS = 8;
const PLANTED = "0123456789abcdef0123456789abcdef01234567";

/** Starts, waits for the end, and gives the exit code and the error that the log names. */
async function failedStart(
  env: Readonly<Record<string, string>>,
  options: { readonly path?: string; readonly place?: ControllerPlace } = {},
): Promise<{ code: number; error: string; text: string; place: ControllerPlace }> {
  await using own = options.place === undefined ? await createControllerPlace() : undefined;
  const place = options.place ?? own;
  assert.ok(place !== undefined);
  await using controller = await startController({ ...options, stateDir: place.stateDir, env });
  const code = await controller.exited;
  const errors = (await controller.log()).filter(({ level }) => level === "ERROR");
  assert.ok(errors.length <= 1, `one line says it: ${JSON.stringify(errors)}`);
  if (own !== undefined) await own.empty();
  return { code, error: String(errors[0]?.["error"]), text: await controller.text(), place };
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

interface Waiting {
  readonly sources: Readonly<
    Record<string, { readonly state: string; readonly lastError: string }>
  >;
}

/** The page, the API and readiness name what the start waits for, within 10 s. */
async function assertWaitsFor(
  controller: ControllerProcess,
  source: "gitea" | "nats",
  why: RegExp,
): Promise<void> {
  await eventually(async () => {
    const { sources } = await controller.get<Waiting & Record<string, unknown>>("/api/v1/status");
    return sources[source]?.state === "down" && why.test(sources[source].lastError);
  }, { what: `${source} to be named by the API`, timeoutMs: 10_000, everyMs: 100 });
  const url = await controller.url();
  const ready = await fetch(`${url}/readyz`);
  assert.equal(ready.status, 503);
  const { checks }: { checks: { detail: string | null }[] } = await ready.json();
  assert.ok(checks.some(({ detail }) => why.test(detail ?? "")), JSON.stringify(checks));
  const page = await fetch(url);
  assert.equal(page.status, 200);
  assert.match((await page.text()).replaceAll("&quot;", '"'), why);
  const named = (await controller.log()).some((line) => why.test(String(line["error"])));
  assert.ok(named, await controller.text());
}

/** A forge, and a registration at it. */
async function startForge(place: ControllerPlace, port: number) {
  const state = `${place.stateDir}.forge`;
  const program = new URL("../../embedded/forge/main.ts", import.meta.url).pathname;
  const start = (): Promise<RunningProcess> =>
    startProcess(Deno.execPath(), ["run", "-A", program, "--state", state, "--port", `${port}`], {
      logFile: `${state}.log`,
    });
  const first = await start();
  const told = await eventually(async () => {
    const line = (await first.tail(1)).trim();
    return line.startsWith("{") ? JSON.parse(line) as { registrationToken: string } : undefined;
  }, { what: "the forge" });
  const url = `http://127.0.0.1:${port}`;
  const signal = AbortSignal.timeout(10_000);
  const { uuid, token } = await register({
    url,
    registrationToken: new Secret(told.registrationToken),
    name: "test",
    labels: [],
  }, { signal });
  return { url, start, first, uuid, token: token.reveal() };
}

Deno.test("main names every setting that is wrong at once, and ends with exit code 2", async () => {
  const { code, text, place } = await failedStart({
    PROFILE: "embedded",
    COMPONENTS: "pod-worker,vm-worker",
    GITEA_URL: "ftp://gitea.example.org",
    GITEA_RUNNER_TOKEN: PLANTED,
    NATS_URL: "http://nats.example.org",
    POD_CAPACITY: "four",
    VM_CAPACITY: "-1",
    VM_RUNNER_LABEL: "vm2",
    MAX_WAIT: "soon",
    LOG_LEVEL: "loud",
    ADMIN_LISTEN: "0.0.0.0:8080",
    CAPABILITY_KEY: "short",
  });
  assert.equal(code, 2);
  const first = text.split("\n")[0] ?? "";
  assert.match(first, /^Cannot start: \d+ settings are wrong$/);
  for (
    const message of [
      "COMPONENTS must include scheduler: workers need its registry of claims",
      "GITEA_URL must be an http or https URL without user, query and fragment",
      "GITEA_RUNNER_UUID is required",
      "NATS_URL must be nats:// or tls:// URLs separated by commas, without user and password",
      "POD_CAPACITY must be a whole number of slots, 0 to 100000",
      "VM_CAPACITY must be a whole number of slots, 0 to 100000",
      "VM_RUNNER_LABEL must be vm or vm-dev",
      "MAX_WAIT must be a duration such as 2h, 90m or 1h30m, at most 720h",
      "LOG_LEVEL must be debug, info, warn or error",
    ]
  ) assert.ok(text.includes(`\n  ${message}\n`), `"${message}" in:\n${text}`);
  assert.match(text, /ADMIN_LISTEN must be on loopback/);
  assert.match(text, /CAPABILITY_KEY must be/);
  assert.ok(!text.includes(PLANTED) && !text.includes('"short"'), text);
  await assert.rejects(Deno.stat(place.stateDir), Deno.errors.NotFound);
});

Deno.test("main names everything that the production profile lacks at once", async () => {
  const { code, text } = await failedStart({ PROFILE: "production" });
  assert.equal(code, 2);
  for (
    const message of [
      "GITEA_URL is required",
      "GITEA_RUNNER_UUID is required",
      "GITEA_RUNNER_TOKEN is required",
      "NATS_URL is required",
      "TRUST_DOMAIN is required",
      "SPIFFE_ENDPOINT_SOCKET, RUNNER_FACADE_URL, and RUNNER_FACADE_SPIFFE_ID are required",
      "CAPABILITY_KEY is required",
      "POD_EXECUTOR_IMAGE is required for pod-worker",
      "SPIRE_AGENT_ID is required for pod-worker",
      "OPENSANDBOX_API is required for vm-worker",
      "HOSTNAME is required for scheduler leader election",
    ]
  ) assert.ok(text.includes(`\n  ${message}\n`), `"${message}" in:\n${text}`);
});

Deno.test("main in production names credentials of the cluster that cannot be read, and touches no STATE_DIR", async () => {
  const { code, error, place } = await failedStart({
    ...PRODUCTION,
    ADMIN_LISTEN: "127.0.0.1:0",
    HEALTH_LISTEN: "127.0.0.1:0",
    KUBERNETES_SERVICE_ACCOUNT_DIR: "/nonexistent",
  });
  assert.equal(code, 1);
  assert.match(error, /"\/nonexistent\/(ca\.crt|token)" for the API server/);
  assert.match(error, /: check KUBERNETES_SERVICE_ACCOUNT_DIR="\/nonexistent"/);
  await assert.rejects(Deno.stat(place.stateDir), Deno.errors.NotFound);
});

Deno.test("main in production names the file of a service account or a template that leads nowhere", async () => {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${directory}/token`, "token");
    await Deno.writeTextFile(`${directory}/ca.crt`, await makeCertificatePem());
    const env = {
      ...PRODUCTION,
      ADMIN_LISTEN: "127.0.0.1:0",
      HEALTH_LISTEN: "127.0.0.1:0",
      KUBERNETES_SERVICE_ACCOUNT_DIR: directory,
    };
    const alone = await failedStart(env);
    assert.equal(alone.code, 1);
    assert.match(
      alone.error,
      /^Read ".*\/namespace" for the API server: NotFound: check KUBERNETES/,
    );
    const template = `${directory}/pod.yaml`;
    await Deno.writeTextFile(template, "text");
    const { code, error } = await failedStart({ ...env, POD_TEMPLATE_FILE: template });
    assert.equal(code, 1);
    assert.match(
      error,
      /^Read the Pod template: it is no object; .*: check POD_TEMPLATE_FILE=".*yaml"/,
    );
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("main waits for a Gitea that is not there yet, says so, and goes on when it comes", async () => {
  await using place = await createControllerPlace();
  const forge = await startForge(place, freePort());
  await forge.first.stop();
  await using controller = await startController({
    stateDir: place.stateDir,
    env: {
      GITEA_URL: forge.url,
      GITEA_RUNNER_UUID: forge.uuid,
      GITEA_RUNNER_TOKEN: forge.token,
    },
  });
  await assertWaitsFor(
    controller,
    "gitea",
    new RegExp(`Cannot check the registration at Gitea "${forge.url}": connection refused`),
  );
  await using _forge = await forge.start();
  await controller.logged("controller is up");
  // Jobs that were queued meanwhile are all taken at once.
  await eventually(async () => {
    return (await controller.get("/api/v1/assignments"))["total"] === SAMPLE_JOBS;
  }, { what: "every queued job to be taken", timeoutMs: 5_000, everyMs: 100 });
  assert.equal(await controller.end("SIGTERM"), 0);
});

Deno.test("main waits while something that is no Gitea answers, and says what it is", async () => {
  await using place = await createControllerPlace();
  await using proxy = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () =>
      new Response("<h1>Back soon</h1>", {
        status: 503,
        headers: { "content-type": "text/html" },
      }),
  );
  const url = `http://127.0.0.1:${proxy.addr.port}`;
  await using controller = await startController({
    stateDir: place.stateDir,
    env: { GITEA_URL: url, GITEA_RUNNER_UUID: UUID, GITEA_RUNNER_TOKEN: PLANTED },
  });
  await assertWaitsFor(controller, "gitea", new RegExp(`Gitea "${url}": .*503`));
  assert.equal(await controller.end("SIGTERM"), 0);
  assert.ok(!(await controller.text()).includes(PLANTED));
});

Deno.test("main fails at once when Gitea does not know the registration", async () => {
  await using place = await createControllerPlace();
  const forge = await startForge(place, freePort());
  await using _forge = forge.first;
  const { code, error, text } = await failedStart({
    GITEA_URL: forge.url,
    GITEA_RUNNER_UUID: UUID,
    GITEA_RUNNER_TOKEN: PLANTED,
  });
  assert.equal(code, 1);
  assert.match(error, /^Cannot check the registration at Gitea "http:\/\/127\.0\.0\.1:\d+": /);
  assert.match(error, /GITEA_RUNNER_UUID or GITEA_RUNNER_TOKEN is wrong.*"deno task register"/);
  assert.ok(!text.includes(PLANTED));
});

Deno.test("main fails at once without a registration, and says how to make one", async () => {
  const { code, error } = await failedStart({ GITEA_URL: "http://127.0.0.1:3000" });
  assert.equal(code, 1);
  assert.match(
    error,
    /^Find the registration at "http:\/\/127\.0\.0\.1:3000": .*deno task register/,
  );
});

Deno.test("main waits for a NATS that is not there yet, says so, and goes on when it comes", async () => {
  await using place = await createControllerPlace();
  await using nats = await startNats({ config: " " });
  await nats.stop();
  await using controller = await startController({
    stateDir: place.stateDir,
    env: { PROFILE: "embedded", NATS_URL: nats.url },
  });
  await assertWaitsFor(
    controller,
    "nats",
    new RegExp(`Connect to NATS at "${nats.url}": no answer`),
  );
  await nats.restart();
  await controller.logged("controller is up");
  assert.equal(await controller.end("SIGTERM"), 0);
});

Deno.test("main waits for JetStream on a server that does not have it, and says so", async () => {
  await using place = await createControllerPlace();
  await using nats = await startNats({
    config: 'accounts { A { users = [{ user: "a", password: "b" }] } }',
  });
  await using controller = await startController({
    stateDir: place.stateDir,
    env: { PROFILE: "embedded", NATS_URL: nats.url, NATS_USER: "a", NATS_PASSWORD: "b" },
  });
  await assertWaitsFor(controller, "nats", /JetStream/);
  assert.equal(await controller.end("SIGTERM"), 0);
});

Deno.test("main fails at once when NATS refuses the credentials", async () => {
  await using nats = await startNats({
    config: 'authorization { user: "gdr", password: "right" }',
  });
  const { code, error, text } = await failedStart({
    PROFILE: "embedded",
    NATS_URL: nats.url,
    NATS_USER: "gdr",
    NATS_PASSWORD: PLANTED,
  });
  assert.equal(code, 1);
  assert.match(
    error,
    /^Connect to NATS at "nats:\/\/127\.0\.0\.1:\d+": the server refuses the cred/,
  );
  assert.match(error, /check NATS_USER, NATS_PASSWORD and NATS_CREDS_FILE/);
  assert.ok(!text.includes(PLANTED));
});

Deno.test("main fails at once when the stream that is there differs, and leaves it as it is", async () => {
  await using nats = await startNats({ config: " " });
  await using connection = connectTo(nats);
  const call = { signal: AbortSignal.timeout(20_000) };
  const body = {
    name: "CI_RUNNER",
    subjects: ["ci.assignment.*"],
    retention: "limits",
    storage: "file",
  };
  await demandApi(connection, { path: "STREAM.CREATE.CI_RUNNER", body, action: "Make" }, call);
  const look = async () => {
    const path = "STREAM.INFO.CI_RUNNER";
    return (await demandApi(connection, { path, action: "Look" }, call))["config"];
  };
  const before = await look();
  const { code, error } = await failedStart({ PROFILE: "embedded", NATS_URL: nats.url });
  assert.equal(code, 1);
  assert.equal(
    error,
    'Use stream "CI_RUNNER": its retention is "limits", needed is "workqueue"; change it, or set NATS_STREAM to another name',
  );
  assert.deepEqual(await look(), before);
});

Deno.test("main refuses a state directory that another controller uses, and leaves that one alone", async () => {
  await using place = await createControllerPlace();
  await using controller = await startController(place);
  await controller.logged("controller is up");
  // A second log beside the first one's.
  const link = `${place.stateDir}.link`;
  await Deno.symlink(place.stateDir, link);
  await using second = await startController({ stateDir: link });
  assert.equal(await second.exited, 1);
  assert.match(
    String((await second.logged("runner stopped"))["error"]),
    new RegExp(`^Use ".*": process ${controller.pid} is using it; stop that one, or set STATE_DIR`),
  );
  assert.equal((await controller.get("/readyz"))["ready"], true);
  assert.equal(await controller.end("SIGTERM"), 0);
});

Deno.test("main names a state directory that cannot be used, and what to do", async () => {
  await using place = await createControllerPlace();
  await Deno.writeTextFile(place.stateDir, "a file");
  const file = await failedStart({}, { place });
  assert.equal(file.code, 1);
  assert.match(file.error, /^Write to ".*": file exists; set STATE_DIR to a directory/);
  await Deno.remove(place.stateDir);
  await Deno.mkdir(place.stateDir, { mode: 0o755 });
  const wide = await failedStart({}, { place });
  assert.equal(wide.code, 1);
  assert.match(wide.error, /^Use ".*": mode 755 opens it to others, it must be 700 \(chmod 700 /);
  assert.deepEqual([...Deno.readDirSync(place.stateDir)], []);
});

Deno.test("main names the setting of an address that is taken", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = `127.0.0.1:${listener.addr.port}`;
  for (const variable of ["ADMIN_LISTEN", "HEALTH_LISTEN"]) {
    const { code, error, place } = await failedStart({ [variable]: address });
    assert.equal(code, 1);
    assert.equal(
      error,
      `Listen on "${address}": another program listens there; stop that one, or set ${variable} to another address`,
    );
    await assert.rejects(Deno.stat(place.stateDir), Deno.errors.NotFound);
  }
});

Deno.test("main names the choices when there is no nats-server and none can be fetched", async () => {
  await using place = await createControllerPlace();
  const path = `${place.stateDir}.path`;
  await Deno.mkdir(path);
  const { code, error } = await failedStart({}, { place, path });
  assert.equal(code, 1);
  for (const choice of ["on PATH", "Python 3", "Go", "container", "NATS_URL"]) {
    assert.ok(error.includes(choice), error);
  }
  await place.empty();
});
