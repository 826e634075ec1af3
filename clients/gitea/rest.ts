import type { Call } from "../../controller/backend.ts";
import { GiteaError } from "../../controller/gitea.ts";
import { parseTaskId } from "../../controller/model/ids.ts";
import type { RunningTask, RunningTasks } from "../../controller/orphans.ts";
import type { RegisteredRunner, RegisteredRunners } from "../../controller/other_runners.ts";
import { readAtMost } from "../../lib/bytes.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { isObject, objectOrEmpty, ownProperty } from "../../lib/json_object.ts";
import type { Secret } from "../../lib/secret.ts";
import { callWithin } from "./call.ts";
import { giteaError } from "./error.ts";

/** Where Gitea is, and the token of `GITEA_API_TOKEN`. */
export interface GiteaRestOptions {
  /** Base URL, with or without a trailing slash. */
  readonly url: string;
  readonly token: Secret;
  readonly clock?: Clock;
  readonly fetch?: typeof globalThis.fetch;
}

const DEADLINE_MS = 10_000;
/** Of a page of fifty. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;
/** Gitea's largest page (MAX_RESPONSE_ITEMS). */
const PAGE = 50;
/** One listing asks at most for so many pages of jobs or runners, repositories, and pages of tasks each. */
const LIMITS = { pages: 10, repositories: 25, taskPages: 4 };
/** A task that began longer ago was ended by Gitea's own time-outs; the list goes from new to old. */
const OLDEST_MS = 24 * 3_600_000;

interface Page {
  readonly body: unknown;
  /** Gitea's clock, milliseconds since the epoch. */
  readonly at: number;
}

/**
 * The read-only part of Gitea's REST API that finds running tasks and registered runners; measured on
 * 1.26.0. `GET /repos/{owner}/{repo}/actions/tasks` is the only list with task ids, newest first. An
 * administrator's token with the scope `read:admin` learns from `/admin/actions/jobs` which
 * repositories have jobs at work; any other token (scope `read:repository`) walks through the
 * repositories that it can see, 25 at each call.
 */
export function createGiteaRest(options: GiteaRestOptions): RunningTasks & RegisteredRunners {
  const url = options.url.replace(/\/+$/, "");
  const clock = options.clock ?? systemClock;
  const fetch = options.fetch ?? globalThis.fetch;
  let administrator = true;
  let nextPage = 1;

  /** One GET; null when the token may not, or the thing is not there. */
  const get = (path: string, action: string, { signal }: Call): Promise<Page | null> => {
    const attempt = { action, url };
    return callWithin(async (signal) => {
      const response = await fetch(`${url}/api/v1${path}`, {
        headers: { authorization: `token ${options.token.reveal()}`, accept: "application/json" },
        // The request carries the token: it goes nowhere else.
        redirect: "manual",
        signal,
      });
      if (response.status === 403 || response.status === 404) {
        await response.body?.cancel();
        return null;
      }
      if (!response.ok) {
        await response.body?.cancel();
        if (response.status === 401) {
          throw new GiteaError(
            "unauthenticated",
            `Cannot ${action} Gitea "${url}": answered 401: GITEA_API_TOKEN is wrong or was revoked`,
          );
        }
        throw giteaError("unavailable", attempt, `answered ${response.status}`);
      }
      const at = Date.parse(response.headers.get("date") ?? "");
      const bytes = await readAtMost(response.body ?? [], MAX_ANSWER_BYTES);
      if (bytes === undefined) {
        const size = `${MAX_ANSWER_BYTES / 2 ** 20} MiB`;
        throw giteaError("not_gitea", attempt, `answered with more than ${size}`);
      }
      const body: unknown = JSON.parse(new TextDecoder().decode(bytes));
      return { body, at: Number.isNaN(at) ? clock.now() : at };
    }, { attempt, deadlineMs: DEADLINE_MS, clock, signal });
  };

  /** Repositories with jobs at work; null when only an administrator may ask. */
  const busyRepositories = async (call: Call): Promise<string[] | null> => {
    const found = new Set<string>();
    for (let page = 1; page <= LIMITS.pages; page++) {
      const answer = await get(
        `/admin/actions/jobs?status=in_progress&limit=${PAGE}&page=${page}`,
        "list running jobs of",
        call,
      );
      if (answer === null) return null;
      const jobs = listAt(answer.body, "jobs");
      for (const job of jobs) {
        const repository = repositoryOf(ownProperty(job, "url"));
        if (repository !== undefined) found.add(repository);
      }
      if (jobs.length < PAGE) break;
    }
    return [...found];
  };

  /** The next few of all repositories that the token can see, in turn. */
  const someRepositories = async (call: Call): Promise<string[]> => {
    const size = LIMITS.repositories;
    const answer = await get(
      `/repos/search?sort=id&order=asc&limit=${size}&page=${nextPage}`,
      "list repositories of",
      call,
    );
    const repositories = answer === null ? [] : listAt(answer.body, "data");
    nextPage = repositories.length < size ? 1 : nextPage + 1;
    return repositories.filter((each) => ownProperty(each, "has_actions") !== false)
      .map((each) => ownProperty(each, "full_name")).filter(isRepository);
  };

  const runningIn = async (repository: string, call: Call): Promise<RunningTask[]> => {
    const found: RunningTask[] = [];
    for (let page = 1; page <= LIMITS.taskPages; page++) {
      const answer = await get(
        `/repos/${repository}/actions/tasks?limit=${PAGE}&page=${page}`,
        "list tasks of",
        call,
      );
      if (answer === null) break;
      const tasks = listAt(answer.body, "workflow_runs");
      let oldest = 0;
      for (const task of tasks) {
        const { id, name, status, run_started_at: startedAt } = objectOrEmpty(task);
        const ageMs = answer.at - Date.parse(String(startedAt));
        oldest = Math.max(oldest, ageMs);
        const taskId = parseTaskId(String(id));
        if (status !== "running" || taskId === undefined || Number.isNaN(ageMs)) continue;
        found.push({ taskId, ageMs, repository, job: String(name ?? "").slice(0, 200) });
      }
      if (tasks.length < PAGE || oldest > OLDEST_MS) break;
    }
    return found;
  };

  return {
    async list(call) {
      const busy = administrator ? await busyRepositories(call) : null;
      administrator = busy !== null;
      const found: RunningTask[] = [];
      for (const repository of busy ?? await someRepositories(call)) {
        found.push(...await runningIn(repository, call));
      }
      return found;
    },
    async runners(call) {
      const found: RegisteredRunner[] = [];
      for (let page = 1; page <= LIMITS.pages; page++) {
        const path = `/admin/actions/runners?limit=${PAGE}&page=${page}`;
        const answer = await get(path, "list runners of", call);
        if (answer === null) return null;
        const runners = listAt(answer.body, "runners");
        for (const runner of runners) {
          const { id, name } = objectOrEmpty(runner);
          const labels = listAt(runner, "labels").map((label) =>
            String(ownProperty(label, "name") ?? "")
          );
          found.push({ id: String(id), name: String(name ?? "").slice(0, 200), labels });
        }
        if (runners.length < PAGE) break;
      }
      return found;
    },
  } satisfies RunningTasks & RegisteredRunners;
}

function listAt(body: unknown, name: string): readonly unknown[] {
  const list = isObject(body) ? body[name] : undefined;
  return Array.isArray(list) ? list : [];
}

/** `owner/name` of `.../api/v1/repos/<owner>/<name>/actions/jobs/<id>`. */
function repositoryOf(url: unknown): string | undefined {
  const found = /\/api\/v1\/repos\/([\w.-]+\/[\w.-]+)\/actions\/jobs\/\d+$/.exec(String(url))?.[1];
  return isRepository(found) ? found : undefined;
}

/** Safe in a path: Gitea's names have no other characters, and `..` is not one. */
function isRepository(name: unknown): name is string {
  return typeof name === "string" && /^[\w.-]+\/[\w.-]+$/.test(name) &&
    !name.split("/").some((part) => part === "." || part === "..");
}
