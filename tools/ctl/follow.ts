import type { OperationView } from "../../controller/views/views.ts";
import { timeoutOf } from "./arguments.ts";
import { type ApiAnswer, detailOf, UnreachableError } from "./client.ts";
import type { CommandCall } from "./command.ts";
import { operationText } from "./render.ts";
import { EXIT } from "./usage.ts";

const POLL_MS = 500;

/**
 * Asks, and prints the operation of the answer; with --wait it is asked for until it has ended, and
 * progress is shown when it changes. A dashboard that is away meanwhile, as it is while another leader
 * takes over, is waited for: the operation goes on there. Resolves to the exit code. Rejects with
 * `UsageError`, before anything is asked, when --timeout says no time.
 */
export async function follow(call: CommandCall, ask: () => Promise<ApiAnswer>): Promise<number> {
  const { line, clock, signal, out, err, conclude } = call;
  const show = (body: unknown) => operationText(body as OperationView);
  const timeoutMs = timeoutOf(line.text.timeout);
  let answer = await ask();
  const begun = answer.status === 200 || answer.status === 202;
  if (!begun || !line.flags.has("wait")) return conclude(answer, show);
  using limit = clock.timeout(timeoutMs);
  const within = AbortSignal.any([signal, limit.signal]);
  let shown = "";
  let away: string | undefined;
  while (true) {
    const operation = answer.body as OperationView;
    const text = show(operation);
    if (operation.state !== "running") break;
    if (limit.signal.aborted) {
      conclude(answer, show);
      return EXIT.unfinished;
    }
    if (text !== shown && !line.flags.has("json")) out(text);
    shown = text;
    await clock.sleep(POLL_MS, within).catch(() => signal.throwIfAborted());
    const next = await look(call, operation.id, within);
    if (typeof next !== "string") {
      if (next.status >= 300) return conclude(next, show);
      [answer, away] = [next, undefined];
    } else if (away === undefined && !limit.signal.aborted) {
      away = next;
      err(`${away}; waiting for it\n`);
    }
  }
  const code = conclude(answer, show);
  const failed = code === EXIT.done && (answer.body as OperationView).state === "failed";
  return failed ? EXIT.unfinished : code;
}

/** The operation; in words why it cannot be told now. Rejects with the reason of the call's own signal. */
async function look(
  { client, signal }: CommandCall,
  id: string,
  within: AbortSignal,
): Promise<ApiAnswer | string> {
  try {
    const answer = await client.get(`/operations/${encodeURIComponent(id)}`, within);
    return answer.status === 503 ? detailOf(answer) : answer;
  } catch (error) {
    signal.throwIfAborted();
    if (within.aborted || error instanceof UnreachableError) return (error as Error).message;
    throw error;
  }
}
