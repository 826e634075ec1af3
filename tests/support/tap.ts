import { ownProperty } from "../../lib/json_object.ts";

/** A test as `deno test --reporter=tap` has told of it. */
export type TapCase = { readonly name: string } & TapOutcome;
type TapOutcome =
  | { readonly kind: "passed" }
  | { readonly kind: "skipped" }
  | { readonly kind: "failed"; readonly why: string };

/** Reads the tests, not their steps; `planned` is how many there should be, null before the end is told. */
export function readTap(
  text: string,
): { readonly cases: readonly TapCase[]; readonly planned: number | null } {
  const cases: TapCase[] = [];
  let planned: number | null = null;
  let failing: string | null = null;
  for (const line of text.split("\n")) {
    const [, no, name = "", skip] = /^(not )?ok \d+ - (.*?)( # SKIP)?$/.exec(line) ?? [];
    const plan = /^1\.\.(\d+)$/.exec(line)?.[1];
    if (plan !== undefined) planned = Number(plan);
    else if (name !== "" && no === undefined) {
      cases.push({ name, kind: skip === undefined ? "passed" : "skipped" });
    } else if (name !== "") {
      failing = name;
      cases.push({ name, kind: "failed", why: "no reason is told" });
    } else if (failing !== null && line.startsWith("  {")) {
      cases.splice(-1, 1, { name: failing, kind: "failed", why: messageOf(line) });
      failing = null;
    }
  }
  return { cases, planned };
}

function messageOf(line: string): string {
  try {
    const message = ownProperty(JSON.parse(line), "message");
    return typeof message === "string" ? message : line;
  } catch {
    return line;
  }
}
