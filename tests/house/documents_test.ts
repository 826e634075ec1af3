import assert from "node:assert/strict";
import { type VariableName, variableOf, VARIABLES } from "../../controller/config/variables.ts";
import { read, ROOT, sourceFiles, trackedFiles } from "./repository.ts";

const START = "npx -y deno@2.9.6 task start";
const TEST = "npx -y deno@2.9.6 task test";

Deno.test("README names the two commands on its first screen", () => {
  const screen = read("README.md").split("\n").slice(0, 40).join("\n");
  assert.ok(screen.includes(START), `README's first screen lacks "${START}"`);
  assert.ok(screen.includes(TEST), `README's first screen lacks "${TEST}"`);
});

Deno.test(".ci/run calls README's two commands, the tests first", () => {
  const commands = read(".ci/run").split("\n").filter((line) => !line.trimStart().startsWith("#"));
  const at = (text: string) => commands.findIndex((line) => line.trimEnd().endsWith(text));
  assert.ok(at(TEST) >= 0, `.ci/run does not call "${TEST}"`);
  assert.ok(at(START) >= 0, `.ci/run does not call "${START}"`);
  assert.ok(at(TEST) < at(START));
});

Deno.test("every pinned Deno is the same version", () => {
  const pins = trackedFiles()
    .filter((path) => /\.(md|ts|yaml|yml|json)$|^\.(ci|githooks)\//.test(path))
    .flatMap((path) => [...read(path).matchAll(/deno@(\d+\.\d+\.\d+)/g)].map((match) => match[1]));
  assert.deepEqual([...new Set(pins)], ["2.9.6"]);
});

Deno.test("`deno test -A` at the root runs the same tests as the task", () => {
  const config = JSON.parse(read("deno.json")) as {
    tasks: Record<string, { command: string }>;
    test: Record<string, unknown>;
  };
  assert.equal(config.tasks["test"]?.command, "deno test -A");
  assert.equal(config.test["sanitizeOps"], true);
  assert.equal(config.test["sanitizeResources"], true);
  assert.equal(config.test["include"], undefined);
});

Deno.test("every task's script is there", () => {
  const config = JSON.parse(read("deno.json")) as { tasks: Record<string, { command: string }> };
  const files = new Set(trackedFiles());
  const missing = Object.values(config.tasks)
    .flatMap(({ command }) => command.match(/\b[\w/]+\.ts\b/g) ?? [])
    .filter((path) => !files.has(path));
  assert.deepEqual(missing, []);
});

Deno.test("CHANGELOG has an Unreleased section with something in it", () => {
  assert.match(read("CHANGELOG.md"), /^## \[Unreleased\]\n\n### \w+\n\n- /m);
});

Deno.test("docs/architecture.md names every file of lib/, controller/ and wiring/", () => {
  const text = read("docs/architecture.md");
  const apart = ["controller/model/", "controller/config/"];
  const unnamed = trackedFiles()
    .filter((path) => /^(?:lib|controller|wiring)\/.*(?<!_test)\.ts$/.test(path))
    .filter((path) => !apart.some((folder) => path.startsWith(folder)))
    .filter((path) => !endings(path).some((ending) => text.includes(`\`${ending}\``)));
  assert.deepEqual(unnamed, []);
});

for (const folder of ["web", "components", "islands"]) {
  Deno.test(`${folder}/README.md names every file of ${folder}/, and no other`, () => {
    const files = trackedFiles()
      .filter((path) => path.startsWith(`${folder}/`) && /(?<!_test)\.tsx?$/.test(path));
    const rows = read(`${folder}/README.md`).split("\n").filter((line) => line.startsWith("|"));
    const text = rows.join("\n");
    assert.deepEqual(
      files.filter((path) => !endings(path).some((ending) => text.includes(`\`${ending}\``))),
      [],
    );
    const gone = [...text.matchAll(/`([\w/]+\.tsx?)`/g)].map((match) => match[1] ?? "")
      .filter((name) => !files.some((path) => path.endsWith(`/${name}`)));
    assert.deepEqual(gone, []);
  });
}

/** A path, and what is left of it without its first folders. */
function endings(path: string): string[] {
  return path.split("/").map((_, i, parts) => parts.slice(i).join("/"));
}

Deno.test("every decision record is linked, numbered without a gap, and complete", () => {
  const index = read("docs/adr/README.md");
  const records = [...Deno.readDirSync(`${ROOT}docs/adr`)].map(({ name }) => name)
    .filter((name) => name !== "README.md").sort();
  assert.ok(records.length >= 20);
  records.forEach((name, i) => {
    assert.match(name, /^\d{4}-[a-z0-9-]+\.md$/);
    assert.equal(Number(name.slice(0, 4)), i + 1, `docs/adr/${name} leaves a gap`);
    assert.ok(index.includes(`](${name})`), `docs/adr/README.md does not link ${name}`);
    const sections = [...read(`docs/adr/${name}`).matchAll(/^## (.+)$/gm)].map((match) => match[1]);
    assert.deepEqual(sections, ["Context", "Decision", "Consequences"], name);
  });
});

Deno.test("docs/configuration.md has a row for every variable, secrets marked, and no other", () => {
  const rows = [...read("docs/configuration.md").matchAll(/^\| `([A-Z][A-Z0-9_]+)`( 🔑)? \|/gm)];
  const expected = Object.keys(VARIABLES).map((name) =>
    variableOf(name as VariableName).secret ? `${name} secret` : name
  );
  const documented = rows.map(([, name, key]) => key === undefined ? name : `${name} secret`);
  assert.deepEqual(documented.sort(), expected.sort());
});

Deno.test("links between documents lead somewhere", () => {
  const broken = trackedFiles().filter((path) => path.endsWith(".md")).flatMap((path) => {
    const folder = new URL(path, "file:///");
    return [...read(path).matchAll(/(?:\]\(|src(?:set)?=")([^)"\s#]+)/g)]
      .map((match) => match[1] ?? "")
      .filter((link) => !/^[a-z]+:/.test(link) && !exists(new URL(link, folder).pathname))
      .map((link) => `${path}: ${link}`);
  });
  assert.deepEqual(broken, []);
});

Deno.test("every export has a doc comment", () => {
  const bare = sourceFiles().filter((path) => /\.tsx?$/.test(path) && !/_test\.tsx?$/.test(path))
    .flatMap((path) => undocumented(read(path)).map((line) => `${path}: ${line}`));
  assert.deepEqual(bare, []);
});

Deno.test("undocumented() finds exports without a doc comment", () => {
  assert.deepEqual(undocumented("/** Fine. */\nexport function a() {}\n"), []);
  assert.deepEqual(undocumented("/** Fine. */\n// deno-lint-ignore x\nexport const b = 1;\n"), []);
  assert.deepEqual(undocumented("export type { X } from './x.ts';\nexport { y };\n"), []);
  assert.deepEqual(undocumented("const x = 1;\nexport async function c() {}\n"), [
    "export async function c() {}",
  ]);
  assert.deepEqual(undocumented("// Not a doc comment.\nexport interface D {\n"), [
    "export interface D {",
  ]);
  assert.deepEqual(undocumented("export default function E() {\n"), [
    "export default function E() {",
  ]);
});

function exists(path: string): boolean {
  try {
    Deno.lstatSync(ROOT + decodeURIComponent(path).slice(1));
    return true;
  } catch {
    return false;
  }
}

/** Lines that export something new without a doc comment before them. */
function undocumented(source: string): string[] {
  const lines = source.split("\n");
  return lines.filter((line, i) => {
    const declares =
      /^export (default |declare |abstract |async )*(function|class|interface|type \w|const|let|namespace)/;
    // `export default name;` passes on what is documented at its declaration.
    if (!declares.test(line) && !/^export default (?!\w+;)/.test(line)) return false;
    let before = i - 1;
    while (/^\s*\/\/ deno-lint-ignore/.test(lines[before] ?? "")) before--;
    // A second signature of the same function is documented by the first.
    const name = /function (\w+)/.exec(line)?.[1];
    const overload = name !== undefined && i > 0 &&
      lines.slice(0, i).some((other) => other.startsWith("export function " + name + "("));
    return !overload && !/\*\/\s*$/.test(lines[before] ?? "");
  });
}
