import assert from "node:assert/strict";

const HOOK = new URL("../../.githooks/pre-commit", import.meta.url).pathname;

/** What the hook runs for one staged file, on a machine with these programs beside the usual ones. */
async function runsOf(...programs: string[]): Promise<string[]> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${folder}/bin`);
    const told = `${folder}/told`;
    for (const name of programs) {
      const script = `#!/bin/bash\necho "${name} $*" >>'${told}'\n`;
      await Deno.writeTextFile(`${folder}/bin/${name}`, script, { mode: 0o755 });
    }
    // Stands in for the repository, too: one with nothing but a staged file.
    const git = `#!/bin/bash\ncase $1 in diff) echo a.ts ;; *) echo '${folder}' ;; esac\n`;
    await Deno.writeTextFile(`${folder}/bin/git`, git, { mode: 0o755 });
    await Deno.symlink("/bin/grep", `${folder}/bin/grep`);
    const { code, stderr } = await new Deno.Command("/bin/bash", {
      args: [HOOK],
      clearEnv: true,
      env: { PATH: `${folder}/bin` },
      cwd: folder,
    }).output();
    assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""]);
    return (await Deno.readTextFile(told)).trimEnd().split("\n");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const CHECKS = [
  "fmt --quiet --check a.ts",
  "lint --quiet a.ts",
  "check --quiet a.ts",
  "test --quiet -A tests/house",
];

Deno.test("the hook before a commit checks by npx when Deno is not on PATH", async () => {
  assert.deepEqual(await runsOf("npx"), CHECKS.map((check) => `npx -y deno@2.9.6 ${check}`));
});

Deno.test("the hook before a commit checks by the Deno on PATH when there is one", async () => {
  assert.deepEqual(await runsOf("npx", "deno"), CHECKS.map((check) => `deno ${check}`));
});
