import type { ReasonCode } from "../../controller/model/reason.ts";
import type { Guest, Platform, Role } from "./platform.ts";
import type { Stage } from "./stage.ts";
import { AFTER_CLAIM, BEFORE_CLAIM } from "./workflows.ts";

/** The shortest that server and controller take; those that are not to expire are renewed by the test. */
export const LIFETIME_S = 60;
const RENEWED_MS = 3_600_000;
const EXPIRED: RegExp = /the lifetime of its sandbox is over \(VM_TIMEOUT_SECONDS: 60 s\)/;

/** Between whole lists of sandboxes, the pause before the second executor, and what making it takes. */
const ANOTHER_MS = 5_000 + 2_000 + 3_000;
const CLAIM_TIMEOUT_MS = 240_000;
/** Silence counts from the last heartbeat, which is at most so old. */
const HEARTBEAT_MS = 10_000;
/** From the proof to what Gitea shows. */
export const TOLD_MS = 10_000;

interface Scene {
  readonly stage: Stage;
  readonly platform: Platform;
}

interface Expected {
  /** Of the API. */
  readonly code: ReasonCode;
  /** Of the API and the job's log. */
  readonly text: RegExp;
  /** What is asserted of the time from `from` to the outcome. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** How the first sandbox of a job ends before the claim, and what becomes of it then. */
export const BEFORE: Readonly<
  Record<
    typeof BEFORE_CLAIM[number],
    Expected & {
      readonly role: Role;
      readonly act?: (stage: Stage, guest: Guest) => Promise<void>;
      /** Of the job's log, where that may say it in other words. */
      readonly row?: RegExp;
      /** Moment of the end, or the one from which its bound counts; null while it has not come. */
      from(guest: Guest): number | null;
    }
  >
> = {
  "before-exit-code": {
    role: { kind: "run", command: ["/bin/sh", "-c", "exit 3"], tells: true },
    from: ({ endedAt }) => endedAt,
    code: "executor_failed",
    text: /TASK_FAILED/,
    fromMs: 2_000,
    toMs: ANOTHER_MS,
  },
  // The server goes on to call it running.
  "before-exit-zero": {
    role: { kind: "run", command: ["/bin/sh", "-c", "exit 0"], tells: true },
    from: ({ boundAt }) => boundAt,
    code: "executor_failed",
    text: /not asked for its job and has been silent for 3 minutes/,
    // At the time-out itself, if a row is due just then.
    row: /did not ask for its job in time|has been silent for 3 minutes/,
    fromMs: CLAIM_TIMEOUT_MS - 5_000,
    toMs: CLAIM_TIMEOUT_MS + 2_000 + ANOTHER_MS,
  },
  // That it is gone is noted when its entry is gone, too, which takes part of the pause.
  "before-deleted": {
    role: { kind: "wait" },
    act: deleted,
    from: ({ goneAt }) => goneAt,
    code: "executor_failed",
    text: /the executor vanished before it asked for its job/,
    fromMs: 0,
    toMs: ANOTHER_MS,
  },
  "before-expired": {
    role: { kind: "wait" },
    from: ({ goneAt }) => goneAt,
    code: "executor_lost",
    text: EXPIRED,
    fromMs: 0,
    toMs: ANOTHER_MS,
  },
};

/** How the sandbox of a running job ends. The outcome is the failure of the job at Gitea. */
export const AFTER: Readonly<
  Record<
    typeof AFTER_CLAIM[number],
    Omit<Expected, "code"> & {
      readonly act?: (scene: Scene, guest: Guest) => Promise<void>;
      /** Whether the server is told of the end of the program. */
      readonly tells: boolean;
    }
  >
> = {
  "after-killed": {
    act: killed,
    tells: true,
    text: /the executor ended without a result: TASK_FAILED/,
    ...afterSilence(60_000),
  },
  "after-silent": {
    act: killed,
    tells: false,
    text: /the executor has been silent for 3 minutes/,
    ...afterSilence(180_000),
  },
  "after-deleted": {
    act: ({ stage }, guest) => deleted(stage, guest),
    tells: true,
    text: /the executor vanished without a result/,
    ...afterSilence(60_000),
  },
  "after-expired": { tells: true, text: EXPIRED, ...afterSilence(60_000) },
};

/** `held`: keys of jobs whose second sandbox is not started yet. */
export function roleOf({ job, nth }: Guest, held: ReadonlySet<string>): Role {
  const before = BEFORE_CLAIM.find((key) => key === job);
  if (before !== undefined && nth === 1) return BEFORE[before].role;
  if (before !== undefined && held.has(before)) return { kind: "wait" };
  const after = AFTER_CLAIM.find((key) => key === job);
  return { kind: "run", tells: after === undefined || AFTER[after].tells };
}

/** Gives the sandbox of a guest a longer life, unless it is one that is to expire. */
export async function keepAlive(stage: Stage, { name, job, nth }: Guest): Promise<void> {
  if (nth === 1 && (job === "before-expired" || job === "after-expired")) return;
  const expiresAt = new Date(Date.now() + RENEWED_MS).toISOString();
  await called(stage, "POST", `${name}/renew-expiration`, { expiresAt });
}

function afterSilence(silenceMs: number): Pick<Expected, "fromMs" | "toMs"> {
  return { fromMs: silenceMs - HEARTBEAT_MS - 1_000, toMs: silenceMs + TOLD_MS };
}

/** The guest's kernel is gone, and nobody has said goodbye. */
async function killed({ platform }: Scene, { name }: Guest): Promise<void> {
  await platform.kill(name);
}

async function deleted(stage: Stage, { name }: Guest): Promise<void> {
  await called(stage, "DELETE", name);
}

/** As somebody who has the key. */
async function called(
  { peers: { opensandbox: { url, apiKey } } }: Stage,
  method: string,
  path: string,
  body?: unknown,
): Promise<void> {
  const response = await fetch(`${url}/v1/sandboxes/${path}`, {
    method,
    headers: { "open-sandbox-api-key": apiKey, "content-type": "application/json" },
    ...body === undefined ? {} : { body: JSON.stringify(body) },
    signal: AbortSignal.timeout(30_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} "${path}": ${response.status} ${text}`);
}
