import type { Lane, Round } from "./schedule.ts";

/** What was asked for. */
export interface Plan {
  readonly seed: number;
  readonly jobs: number;
}

/** A round that was played. */
export interface Entry {
  readonly lane: Lane;
  readonly number: number;
  readonly jobs: number;
  readonly faults: number;
  /** Controllers that ended by themselves; older diaries do not tell. */
  readonly restarts?: number;
  readonly complaints: readonly string[];
  /** How many jobs ended in which way. */
  readonly ends: Readonly<Record<string, number>>;
}

/**
 * A run's folder: `plan.json`, `rounds.jsonl` with one line for each round that was played to its end,
 * `schedule-<lane>-<n>.json` written before its round begins, `faults.jsonl` with what each fault did
 * and when. A run that was cut off goes on after its last whole round.
 */
export interface Diary {
  readonly folder: string;
  readonly plan: Plan;
  readonly entries: readonly Entry[];
  begins(round: Round): Promise<void>;
  note(entry: unknown): void;
  ends(entry: Entry): Promise<void>;
  /** Keeps the product's log of a round that failed. */
  keep(round: Round, log: string): Promise<void>;
}

/** Opens the diary in `folder`, which may hold an earlier part of the run; else it gets `plan`. */
export async function openDiary(folder: string, plan: Plan): Promise<Diary> {
  await Deno.mkdir(folder, { recursive: true });
  const kept = await readIfThere(`${folder}/plan.json`);
  if (kept === undefined) await Deno.writeTextFile(`${folder}/plan.json`, JSON.stringify(plan));
  const lines = (await readIfThere(`${folder}/rounds.jsonl`) ?? "").split("\n");
  const entries = lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Entry);
  const add = (file: string, entry: unknown) =>
    Deno.writeTextFile(`${folder}/${file}`, `${JSON.stringify(entry)}\n`, { append: true });
  return {
    folder,
    plan: kept === undefined ? plan : JSON.parse(kept) as Plan,
    entries,
    begins: (round) =>
      Deno.writeTextFile(
        `${folder}/schedule-${round.lane}-${round.number}.json`,
        JSON.stringify(round, null, 1),
      ),
    note(entry) {
      const line = `${JSON.stringify(entry)}\n`;
      Deno.writeTextFileSync(`${folder}/faults.jsonl`, line, { append: true });
    },
    async ends(entry) {
      entries.push(entry);
      await add("rounds.jsonl", entry);
    },
    keep: ({ lane, number }, log) =>
      Deno.writeTextFile(`${folder}/failed-${lane}-${number}.log`, log),
  };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
