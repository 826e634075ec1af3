import assert from "node:assert/strict";
import { isGenerated, read, sourceFiles, trackedFiles } from "./repository.ts";

/** Explain a longer file in its head comment and name it here. */
const LONG_FILES: readonly string[] = [];
const MAX_LINES = 500;

Deno.test("deno.lock has no tarball and no address of a registry", () => {
  const lock = read("deno.lock");
  assert.ok(
    !lock.includes('"tarball"'),
    'deno.lock has "tarball" lines: install from the default registry',
  );
  assert.doesNotMatch(lock, /https?:\/\//);
});

Deno.test("tracked files name no registry of packages", () => {
  const registries = [
    ["registry", "npmjs", "org"],
    ["registry", "yarnpkg", "com"],
    ["proxy", "golang", "org"],
    ["pypi", "org"],
    ["files", "pythonhosted", "org"],
  ].map((parts) => parts.join("."));
  assert.deepEqual(found(registries), []);
});

Deno.test("tracked files hold no path of somebody's machine", () => {
  // Written in parts, so that this file does not hold them itself.
  const paths = [["work", ""], ["root", ""], ["var", "tmp", ""]].map((p) => `/${p.join("/")}`);
  assert.deepEqual(found(paths), []);
});

Deno.test("tracked files hold no home folder", () => {
  const home = new RegExp(["", "(home|Users)", "[a-z][a-z0-9_-]+", ""].join("/"));
  const hits = trackedFiles().filter((path) => isText(path) && home.test(read(path)));
  assert.deepEqual(hits, []);
});

Deno.test("source files have at most 500 lines, or say why", () => {
  const long = sourceFiles().filter((path) => read(path).split("\n").length - 1 > MAX_LINES);
  assert.deepEqual(long.filter((path) => !LONG_FILES.includes(path)), []);
});

Deno.test("source files are named in snake_case, components in PascalCase", () => {
  const odd = sourceFiles().filter((path) => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    if (/^(components|islands)\//.test(path) && /^[A-Z]\w*\.tsx$/.test(name)) return false;
    // Parts of a page's address: [id].tsx.
    return !/^\[?[a-z][a-z0-9_]*\]?(\.[a-z]+)+$/.test(name);
  });
  assert.deepEqual(odd, []);
});

Deno.test("source files hold no leftover marks", () => {
  const marks = ["TO" + "DO", "FIX" + "ME", "X".repeat(3) + ":"];
  assert.deepEqual(found(marks, sourceFiles()), []);
});

Deno.test("no-console is switched off only where a program prints", () => {
  const mark = "deno-lint-ignore" + " no-console";
  const open = /^(tools|bench|tests\/(e2e|browser)|embedded\/forge|\.ci)\//;
  assert.deepEqual(found([mark], sourceFiles().filter((path) => !open.test(path))), []);
});

function found(texts: readonly string[], files = trackedFiles().filter(isText)): string[] {
  return files.flatMap((path) => {
    const content = read(path);
    return texts.filter((text) => content.includes(text)).map((text) => `${path}: ${text}`);
  });
}

function isText(path: string): boolean {
  return !isGenerated(path) && !/\.(png|ico|woff2?|gz|bin)$/.test(path);
}
