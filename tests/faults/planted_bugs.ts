import { join } from "node:path";
import type { Report } from "../e2e/report.ts";
import type { Mutation } from "./mutations.ts";

const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);
/** Not part of what is tested, or linked. */
const NOT_COPIED = new Set(["node_modules", ".git", ".state"]);

/**
 * Plants each bug, one at a time, into a copy of the repository: the one test that is named for it
 * must pass without the bug and fail with it. `env`: further variables of the tests.
 */
export async function playMutations(
  mutations: readonly Mutation[],
  report: Report,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  if (mutations.length === 0) return;
  const copy = await Deno.makeTempDir({ prefix: "gdr-mutations-" });
  try {
    await copyTree(ROOT, copy);
    await Deno.symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
    for (const mutation of mutations) {
      await report.check(mutation.name, () => plant(mutation, { copy, env }));
    }
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

interface Place {
  /** Copy of the repository. */
  readonly copy: string;
  readonly env: Readonly<Record<string, string>>;
}

async function plant(
  { file, before, after, test }: Mutation,
  place: Place,
): Promise<string> {
  const { copy } = place;
  const path = join(copy, file);
  const sound = await Deno.readTextFile(path);
  const places = sound.split(before).length - 1;
  if (places !== 1) {
    throw new Error(`Plant the bug in "${file}": its text stands there ${places} times: ${before}`);
  }
  const without = await runTest(test, place);
  if (without.passed < 1 || without.failed > 0) {
    throw new Error(`The test "${test.name}" does not pass without the bug: ${without.tail}`);
  }
  await Deno.writeTextFile(path, sound.replace(before, () => after));
  try {
    const planted = await runTest(test, place);
    if (planted.failed < 1) {
      throw new Error(`The test "${test.name}" does not notice the bug: ${planted.tail}`);
    }
  } finally {
    await Deno.writeTextFile(path, sound);
  }
  return `caught by ${test.file}`;
}

interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly tail: string;
}

/** Runs the tests of a file with that text in their names. Code that cannot be loaded counts as neither. */
async function runTest(
  { file, name }: Mutation["test"],
  { copy: cwd, env }: Place,
): Promise<Outcome> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--no-check", "--filter", name, file],
    cwd,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const decoder = new TextDecoder();
  const text = `${decoder.decode(stderr)}\n${decoder.decode(stdout)}`;
  const [, passed = "0", failed = "0"] = /(\d+) passed(?: \([^)]*\))? \| (\d+) failed/.exec(text) ??
    [];
  return {
    passed: Number(passed),
    failed: Number(failed),
    tail: text.trimEnd().split("\n").slice(-12).join("\n"),
  };
}

async function copyTree(from: string, to: string): Promise<void> {
  for await (const { name, isDirectory, isFile } of Deno.readDir(from)) {
    if (NOT_COPIED.has(name)) continue;
    const [source, target] = [join(from, name), join(to, name)];
    if (isDirectory) {
      await Deno.mkdir(target);
      await copyTree(source, target);
    } else if (isFile) await Deno.copyFile(source, target);
  }
}
