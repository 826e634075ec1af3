import type { Page } from "../../controller/views/views.ts";
import type { Clock } from "../../lib/clock.ts";
import { ifMatch, type Line, queryOf } from "./arguments.ts";
import type { ApiAnswer, ApiClient } from "./client.ts";
import { follow } from "./follow.ts";
import type { CommandUsage, OptionName } from "./usage.ts";

/** What a command works with. */
export interface CommandDeps {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Answers of people; null where nobody can be asked. */
  readonly ask: ((question: string) => string | null) | null;
  readonly out: (text: string) => void;
  /** For what is no result. */
  readonly err: (text: string) => void;
  /** Prints what an answer means, and gives the exit code. */
  conclude(answer: ApiAnswer, show: (body: unknown) => string): number;
}

/** One run of a command: its line, checked, and what it works with. */
export interface CommandCall extends CommandDeps {
  readonly line: Line;
}

/** One command of the tool. */
export interface Command extends CommandUsage {
  /** Resolves to the exit code; fails with `UsageError` for a line that does not fit. */
  run(call: CommandCall): Promise<number>;
}

/** Options of what {@link list} reads. */
export const PAGING: readonly OptionName[] = ["limit", "cursor"];
/** Options of what {@link act} does. */
export const ACTION: readonly OptionName[] = ["note", "key", "if-match", "wait", "timeout"];

/** Reads `/api/v1<path>` and prints it. */
export async function read<T>(
  { client, clock, conclude }: CommandCall,
  path: string,
  show: (body: T, now: number) => string,
): Promise<number> {
  const now = clock.now();
  return conclude(await client.get(path), (body) => show(body as T, now));
}

/** The same of a list with those of its filters that the line has, page by page. */
export async function list<T>(
  call: CommandCall,
  path: string,
  { filters, show }: {
    readonly filters: readonly OptionName[];
    readonly show: (page: Page<T>, now: number) => string;
  },
): Promise<number> {
  return await read(call, path + queryOf(call.line, [...filters, ...PAGING]), show);
}

/** Takes the action at `path`, under the condition of `tag` unless the line has one; with --wait to its end. */
export async function act(
  call: CommandCall,
  path: string,
  { body = {}, tag }: {
    readonly body?: Readonly<Record<string, unknown>>;
    readonly tag?: string;
  } = {},
): Promise<number> {
  const { line: { text }, client } = call;
  return await follow(call, () =>
    client.post(path, { note: text.note ?? "", ...body }, {
      "idempotency-key": text.key ?? crypto.randomUUID(),
      ...ifMatch(text["if-match"] ?? tag),
    }));
}
