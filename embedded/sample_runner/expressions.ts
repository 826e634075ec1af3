/** A tree of strings that `${{ a.b.c }}` looks into. */
export interface Context {
  readonly [name: string]: string | Context | undefined;
}

/** An expression that is more than this runner knows. The message is meant for the job's author. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

/** How the steps so far ended, for `if:`. */
export type JobStatus = "success" | "failure" | "cancelled";

const EXPRESSION = /\$\{\{(.*?)\}\}/gs;
const REFERENCE = /^[A-Za-z_][\w-]*(\.[\w-]+)+$/;

/**
 * Replaces every `${{ x.y }}` by its value, empty when there is none. Throws {@link ExpressionError}
 * for operators and functions: the official runner knows those.
 */
export function expand(text: string, context: Context): string {
  return text.replace(EXPRESSION, (_match, inner: string) => value(inner.trim(), context));
}

/** Expands the values of a mapping. */
export function expandAll(
  values: Readonly<Record<string, string>>,
  context: Context,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, text]) => [name, expand(text, context)]),
  );
}

/** Whether a step with this `if:` runs; `success()` when it is not given. */
export function shouldRun(condition: string | undefined, status: JobStatus): boolean {
  const text = (condition ?? "success()").trim().replace(/^\$\{\{(.*)\}\}$/s, "$1").trim();
  const negated = text.startsWith("!");
  const word = negated ? text.slice(1).trim() : text;
  const truth = {
    "always()": true,
    "success()": status === "success",
    "failure()": status === "failure",
    "cancelled()": status === "cancelled",
    "true": status === "success",
    "false": false,
  }[word];
  if (truth === undefined) {
    throw new ExpressionError(
      `Evaluate "if: ${text}": this runner knows always(), success(), failure() and cancelled() only; install the official runner`,
    );
  }
  return negated ? !truth : truth;
}

function value(reference: string, context: Context): string {
  if (/^'[^']*'$/.test(reference)) return reference.slice(1, -1);
  if (!REFERENCE.test(reference)) {
    throw new ExpressionError(
      `Evaluate "${reference}": this runner knows references like github.sha only; install the official runner`,
    );
  }
  let at: string | Context | undefined = context;
  for (const name of reference.split(".")) {
    at = typeof at === "object" ? at[name] ?? at[name.toUpperCase()] : undefined;
  }
  return typeof at === "string" ? at : "";
}
