import type { Result } from "../../controller/model/reason.ts";
import type { StepSnapshot } from "../../controller/model/record.ts";
import type { JobTemplate } from "./job_file.ts";

/** A runner that registered at the forge. */
export interface StoredRunner {
  readonly id: number;
  readonly uuid: string;
  readonly token: string;
  readonly name: string;
  version: string;
  labels: readonly string[];
  capabilities: readonly string[];
}

/** A job, and once a runner was handed it, its task. */
export interface StoredJob extends JobTemplate {
  readonly jobId: number;
  readonly runId: number;
  readonly queuedAt: number;
  /** 0 until a runner was handed it. */
  taskId: number;
  runnerId: number;
  /** Token of the job, 40 hex. */
  token: string;
  claimedAt: number;
  /** Last call about it. */
  heardAt: number;
  stoppedAt: number;
  cancelling: boolean;
  result: Result | null;
  /** As last reported. */
  steps: readonly StepSnapshot[];
  outputs: Readonly<Record<string, string>>;
  sealed: boolean;
}

/** A row of a job's log. */
export interface StoredRow {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly content: string;
}

/** Everything but jobs and logs. */
export interface ForgeMeta {
  tasksVersion: number;
  lastId: { runner: number; run: number; job: number; task: number };
  readonly registrationToken: string;
  /** Signs job tokens (gitea_runtime_token). */
  readonly signingKey: string;
  runners: readonly StoredRunner[];
}

/** What a store holds. */
export interface Stored {
  readonly meta: ForgeMeta;
  readonly jobs: readonly { readonly job: StoredJob; readonly rows: readonly StoredRow[] }[];
}

/** Where the forge keeps its state. Writes are done when they return: an answer never runs ahead. */
export interface ForgeStore {
  load(): Stored | undefined;
  saveMeta(meta: ForgeMeta): void;
  saveJob(job: StoredJob): void;
  appendRows(jobId: number, rows: readonly StoredRow[]): void;
  deleteJob(jobId: number): void;
}

/**
 * A store in a folder (mode 0700): `forge.json`, `job-<id>.json` written by rename, `job-<id>.log`
 * appended to. A row cut short by a crash was never acknowledged and is dropped at the next load.
 */
export function createFileStore(folder: string): ForgeStore {
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = (name: string) => `${folder}/${name}`;
  const write = (name: string, value: unknown) => {
    Deno.writeTextFileSync(path(`${name}.new`), JSON.stringify(value), { mode: 0o600 });
    Deno.renameSync(path(`${name}.new`), path(name));
  };
  return {
    load() {
      const meta = readJson<ForgeMeta>(path("forge.json"));
      if (meta === undefined) return undefined;
      const ids = [...Deno.readDirSync(folder)]
        .map(({ name }) => Number(/^job-(\d+)\.json$/.exec(name)?.[1] ?? 0))
        .filter((id) => id > 0)
        .sort((a, b) => a - b);
      const jobs = ids.flatMap((id) => {
        const job = readJson<StoredJob>(path(`job-${id}.json`));
        return job === undefined ? [] : [{ job, rows: readRows(path(`job-${id}.log`)) }];
      });
      return { meta, jobs };
    },
    saveMeta: (meta) => write("forge.json", meta),
    saveJob: (job) => write(`job-${job.jobId}.json`, job),
    appendRows(jobId, rows) {
      const text = rows.map((row) => JSON.stringify(row) + "\n").join("");
      Deno.writeTextFileSync(path(`job-${jobId}.log`), text, { append: true, mode: 0o600 });
    },
    deleteJob(jobId) {
      for (const name of [`job-${jobId}.json`, `job-${jobId}.log`]) {
        try {
          Deno.removeSync(path(name));
        } catch (error) {
          if (!(error instanceof Deno.errors.NotFound)) throw error;
        }
      }
    },
  };
}

/** Our own file, written by rename: the type holds unless somebody edited it. */
function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(Deno.readTextFileSync(path)) as T;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new Error(`Cannot read "${path}": delete the folder to start afresh`, { cause: error });
  }
}

function readRows(path: string): StoredRow[] {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
  const complete = text.slice(0, text.lastIndexOf("\n") + 1);
  if (complete.length < text.length) Deno.writeTextFileSync(path, complete);
  return complete.split("\n").slice(0, -1).map((line) => JSON.parse(line) as StoredRow);
}
