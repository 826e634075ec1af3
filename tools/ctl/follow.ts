import type { OperationView } from "../../controller/views/views.ts";
import { timeoutOf } from "./arguments.ts";
import type { ApiAnswer } from "./client.ts";
import type { CommandCall } from "./command.ts";
import { operationText } from "./render.ts";
import { EXIT } from "./usage.ts";

const POLL_MS = 500;

/**
 * Asks, and prints the operation of the answer; with --wait it is asked for until it has ended, and
 * progress is shown when it changes. Resolves to the exit code. Rejects with `UsageError`, before
 * anything is asked, when --timeout says no time.
 */
export async function follow(call: CommandCall, ask: () => Promise<ApiAnswer>): Promise<number> {
  const { line, client, clock, signal, out, conclude } = call;
  const show = (body: unknown) => operationText(body as OperationView);
  const timeoutMs = timeoutOf(line.text.timeout);
  const first = await ask();
  const begun = first.status === 200 || first.status === 202;
  if (!begun || !line.flags.has("wait")) return conclude(first, show);
  const end = clock.monotonic() + timeoutMs;
  let answer = first;
  let shown = "";
  while (answer.status < 300) {
    const operation = answer.body as OperationView;
    const text = show(operation);
    if (operation.state !== "running") break;
    if (clock.monotonic() >= end) {
      conclude(answer, show);
      return EXIT.unfinished;
    }
    if (text !== shown && !line.flags.has("json")) out(text);
    shown = text;
    await clock.sleep(POLL_MS, signal);
    answer = await client.get(`/operations/${encodeURIComponent(operation.id)}`);
  }
  const code = conclude(answer, show);
  const failed = code === EXIT.done && (answer.body as OperationView).state === "failed";
  return failed ? EXIT.unfinished : code;
}
