import { type NewSandbox, type Sandbox, type Sandboxes } from "../../backends/vm/sandboxes.ts";
import { createHealthKeeper, type SourceHealth } from "../../lib/source_health.ts";
import type { Answer } from "./answer.ts";
import { malformed } from "./answer.ts";
import { type Page, pageOf, sandboxOf } from "./sandbox.ts";
import { createTransport, type TransportOptions } from "./transport.ts";

/** OpenSandbox's Lifecycle API, and how it has answered lately. Disposing ends calls under way. */
export interface Lifecycle extends Sandboxes, Disposable {
  status(): SourceHealth;
}

/** What {@link createLifecycle} needs. */
export interface LifecycleOptions extends Omit<TransportOptions, "onOutcome"> {
  /** For a create; above the server's own limits. Default 120 s. */
  readonly createTimeoutMs?: number;
  /** For every other request. Default 15 s. */
  readonly timeoutMs?: number;
}

/** SPEC 9; the server takes 1 to 200. */
const PAGE_SIZE = 100;
/** More would be ten times of what a server is made for. */
const MAX_PAGES = 200;
/** Of one list, when sandboxes come and go meanwhile. */
const MAX_WALKS = 4;
/** The server waits 30 s for a free sandbox and 60 s for its start, unless it is set otherwise. */
const CREATE_TIMEOUT_MS = 120_000;
const TIMEOUT_MS = 15_000;

/**
 * Makes {@link Lifecycle}, a client of opensandbox-server (measured on 1.1.1) over one pool of
 * connections; speaks with nobody yet. Throws a `TypeError` without an API key.
 */
export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { createTimeoutMs = CREATE_TIMEOUT_MS, timeoutMs = TIMEOUT_MS } = options;
  if (options.apiKey.reveal() === "") {
    throw new TypeError("Speak with OpenSandbox: the API key is empty: set OPENSANDBOX_API_KEY");
  }
  const keeper = createHealthKeeper(options.clock);
  const transport = createTransport({
    ...options,
    onOutcome: (error) => error === null ? keeper.ok() : keeper.failed(error),
  });

  const page = async (number: number, filter: string, signal: AbortSignal): Promise<Page> => {
    const path = `/sandboxes?page=${number}&pageSize=${PAGE_SIZE}${filter}`;
    const found = pageOf(
      json(await transport.exchange({ method: "GET", path, timeoutMs }, signal)),
    );
    if (found === undefined) throw malformed("not a page of sandboxes");
    return found;
  };

  /** Once through all pages; false when others moved the borders of the pages meanwhile. */
  const walk = async (found: Map<string, Sandbox>, filter: string, signal: AbortSignal) => {
    const seen = new Set<string>();
    let totals: readonly [least: number, most: number] | null = null;
    for (let number = 1; number <= MAX_PAGES; number++) {
      const { sandboxes, total, hasNext } = await page(number, filter, signal);
      for (const sandbox of sandboxes) {
        seen.add(sandbox.id);
        found.set(sandbox.id, sandbox);
      }
      totals = totals === null
        ? [total, total]
        : [Math.min(totals[0], total), Math.max(totals[1], total)];
      if (!hasNext) return totals[0] === totals[1] && seen.size >= totals[1];
    }
    throw malformed(`more than ${MAX_PAGES} pages of sandboxes`);
  };

  return {
    async list(metadata, { signal }) {
      const filter = filterOf(metadata);
      const found = new Map<string, Sandbox>();
      // Pages are offsets: one that goes while we walk hides another. What any walk has met is told.
      for (let walks = 1; walks <= MAX_WALKS; walks++) {
        if (await walk(found, filter, signal)) break;
      }
      return [...found.values()].sort(byAge);
    },
    async get(id, { signal }) {
      const request = { method: "GET", path: pathOf(id), also: [404], timeoutMs } as const;
      const answer = await transport.exchange(request, signal);
      return isAbsent(answer) ? undefined : sandboxIn(answer);
    },
    async create(sandbox, { signal }) {
      const answer = await transport.exchange({
        method: "POST",
        path: "/sandboxes",
        body: bodyOf(sandbox),
        timeoutMs: createTimeoutMs,
      }, signal);
      return sandboxIn(answer);
    },
    async patch(id, metadata, { signal }) {
      const answer = await transport.exchange({
        method: "PATCH",
        path: `${pathOf(id)}/metadata`,
        body: metadata,
        also: [404],
        timeoutMs,
      }, signal);
      if (isAbsent(answer)) return false;
      sandboxIn(answer); // A page of a proxy's would be no answer.
      return true;
    },
    async delete(id, { signal }) {
      const request = { method: "DELETE", path: pathOf(id), also: [404], timeoutMs } as const;
      const answer = await transport.exchange(request, signal);
      if (isAbsent(answer)) return false;
      if (answer.status !== 204) throw malformed(`${answer.status} to a deletion`);
      return true;
    },
    status: () => keeper.status(),
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  };
}

/** Oldest first; times are whole seconds, so that ids decide between equals. */
function byAge(a: Sandbox, b: Sandbox): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

/** One query value that holds a query string; unescaped, its `&` would silently end the filter. */
function filterOf(metadata: Readonly<Record<string, string>>): string {
  const filter = new URLSearchParams({ ...metadata }).toString();
  return filter === "" ? "" : `&metadata=${encodeURIComponent(filter)}`;
}

function pathOf(id: string): string {
  return `/sandboxes/${encodeURIComponent(id)}`;
}

function bodyOf({ pool, entrypoint, environment, metadata, timeoutMs }: NewSandbox) {
  return {
    extensions: { poolRef: pool },
    entrypoint,
    env: environment,
    metadata,
    timeout: Math.ceil(timeoutMs / 1000),
  };
}

/** A 404 of the server's own; that of a proxy, or of another path, says nothing about a sandbox. */
function isAbsent(answer: Answer): boolean {
  if (answer.status !== 404) return false;
  if (/"code"\s*:\s*"[A-Z]+::SANDBOX_NOT_FOUND"/.test(answer.text)) return true;
  throw malformed("404 without the code SANDBOX_NOT_FOUND: check OPENSANDBOX_API");
}

function sandboxIn(answer: Answer): Sandbox {
  const sandbox = sandboxOf(json(answer));
  if (sandbox === undefined) throw malformed("not a sandbox");
  return sandbox;
}

function json({ text }: Answer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed(text === "" ? "empty" : "broken JSON");
  }
}
