import assert from "node:assert/strict";
import { createFakeForge } from "../tests/fakes/forge/fake_forge.ts";
import { runRegister } from "./register.ts";

async function setup() {
  const folder = await Deno.makeTempDir();
  const fake = createFakeForge();
  let said = "";
  return {
    fake,
    folder,
    said: () => said,
    run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
      said = "";
      return runRegister(args, {
        env,
        fetch: fake.fetch,
        signal: new AbortController().signal,
        say: (text) => {
          said += text;
        },
      });
    },
    files: () => [...Deno.readDirSync(folder)].map(({ name }) => name).sort(),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

Deno.test("runRegister() writes a registration that Gitea accepts, readable by its owner only", async () => {
  await using s = await setup();
  const out = `${s.folder}/runner.env`;
  const code = await s.run(["--url", s.fake.url, "--out", out, "--name", "ours"], {
    REGISTRATION_TOKEN: s.fake.forge.registrationToken,
  });
  assert.equal(code, 0, s.said());
  const uuid = await Deno.readTextFile(`${s.folder}/GITEA_RUNNER_UUID`);
  const token = await Deno.readTextFile(`${s.folder}/GITEA_RUNNER_TOKEN`);
  assert.equal(s.fake.forge.authenticate(uuid, token).name, "ours");
  assert.equal(
    await Deno.readTextFile(out),
    `GITEA_RUNNER_UUID=${uuid}\nGITEA_RUNNER_TOKEN=${token}\n`,
  );
  for (const name of s.files()) {
    assert.equal((Deno.statSync(`${s.folder}/${name}`).mode ?? 0) & 0o777, 0o600, name);
  }
  assert(!s.said().includes(token), "the token was printed");
  assert.match(s.said(), /npx -y deno@2\.9\.6 task start/);
});

Deno.test("runRegister() replaces no file and registers nothing when one exists", async () => {
  await using s = await setup();
  await Deno.writeTextFile(`${s.folder}/GITEA_RUNNER_TOKEN`, "precious");
  const token = s.fake.forge.registrationToken;
  const args = ["--url", s.fake.url, "--token", token, "--out", `${s.folder}/runner.env`];
  assert.equal(await s.run(args), 1);
  assert.match(s.said(), /exists already/);
  assert.deepEqual(s.files(), ["GITEA_RUNNER_TOKEN"]);
  assert.equal(await Deno.readTextFile(`${s.folder}/GITEA_RUNNER_TOKEN`), "precious");
});

Deno.test("runRegister() names a bad token, a silent server and one that is not Gitea, and leaves no file", async () => {
  await using s = await setup();
  const args = ["--url", s.fake.url, "--token", "wrong", "--out", `${s.folder}/runner.env`];
  assert.equal(await s.run(args), 1);
  assert.match(s.said(), /^bad_registration_token: .*registration token not found/);
  assert(!s.said().includes("wrong"));
  s.fake.faults.down = true;
  assert.equal(await s.run(args), 1);
  assert.match(s.said(), /^unavailable: .*connection refused/);
  s.fake.faults.down = false;
  s.fake.faults.html = true;
  assert.equal(await s.run(args), 1);
  assert.match(s.said(), /^not_gitea: /);
  assert.deepEqual(s.files(), []);
});

Deno.test("runRegister() reads the token from a file and says what is missing", async () => {
  await using s = await setup();
  const file = `${s.folder}/token`;
  await Deno.writeTextFile(file, `${s.fake.forge.registrationToken}\n`);
  const args = ["--url", s.fake.url, "--out", `${s.folder}/r/runner.env`];
  assert.equal(await s.run(args), 2);
  assert.match(s.said(), /there is no registration token/);
  assert.equal(await s.run(["--url", "gitea", "--out", "x", "--token", "t"]), 2);
  assert.match(s.said(), /--url is "gitea"/);
  assert.equal(await s.run(["--nonsense"]), 2);
  assert.equal(await s.run(args, { REGISTRATION_TOKEN_FILE: file }), 0, s.said());
});
