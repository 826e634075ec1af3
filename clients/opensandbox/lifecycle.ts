import {
  byAge,
  type NewSandbox,
  type Sandbox,
  SandboxError,
  type Sandboxes,
} from "../../backends/vm/sandboxes.ts";
import { createHealthKeeper, type SourceHealth } from "../../lib/source_health.ts";
import { type Answer, malformed } from "./answer.ts";
import { PAGE_SIZE, walkPages } from "./page_walk.ts";
import { type Page, pageOf, type Reading, sandboxOf } from "./sandbox.ts";
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
  /** For all pages of a list together. Default 60 s. */
  readonly listTimeoutMs?: number;
}

/** The server waits 30 s for a free sandbox and 60 s for its start, unless it is set otherwise. */
const CREATE_TIMEOUT_MS = 120_000;
const TIMEOUT_MS = 15_000;
const LIST_TIMEOUT_MS = 60_000;

/**
 * Makes {@link Lifecycle}, a client of opensandbox-server (measured on 1.1.1) over one pool of
 * connections; speaks with nobody yet. Throws a `TypeError` without an API key that a header can carry.
 */
export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { createTimeoutMs = CREATE_TIMEOUT_MS, timeoutMs = TIMEOUT_MS } = options;
  const { clock, listTimeoutMs = LIST_TIMEOUT_MS } = options;
  const keeper = createHealthKeeper(clock);
  const transport = createTransport({
    ...options,
    onOutcome: (error) => error === null ? keeper.ok() : keeper.failed(error),
  });

  const page = (number: number, filter: string, signal: AbortSignal): Promise<Page> =>
    transport.exchange({
      method: "GET",
      path: `/sandboxes?page=${number}&pageSize=${PAGE_SIZE}${filter}`,
      timeoutMs,
      read: pageIn,
    }, signal);

  const inTime = async <T>(signal: AbortSignal, work: (within: AbortSignal) => Promise<T>) => {
    using deadline = clock.timeout(listTimeoutMs);
    try {
      return await work(AbortSignal.any([signal, deadline.signal]));
    } catch (error) {
      signal.throwIfAborted();
      const failure = deadline.signal.aborted
        ? new SandboxError("unknown_outcome", `no whole list within ${listTimeoutMs / 1000} s`)
        : error;
      // Also when each page by itself was an answer.
      if (failure instanceof SandboxError) keeper.failed(failure);
      throw failure;
    }
  };

  return {
    async list(metadata, { signal }) {
      const filter = filterOf(metadata);
      const found = await inTime(
        signal,
        (within) => walkPages((number) => page(number, filter, within)),
      );
      const asked = Object.entries(metadata);
      return found
        // A filter may be lost on the way, and anybody's sandboxes come back.
        .filter((sandbox) => asked.every(([key, value]) => sandbox.metadata[key] === value))
        .sort(byAge);
    },
    get: (id, { signal }) =>
      transport.exchange({
        method: "GET",
        path: pathOf(id),
        also: [404],
        timeoutMs,
        read: (answer, reading) => isAbsent(answer) ? undefined : sandboxIn(answer, reading),
      }, signal),
    create: (sandbox, { signal }) =>
      transport.exchange({
        method: "POST",
        path: "/sandboxes",
        body: bodyOf(sandbox),
        secrets: Object.values(sandbox.environment).filter(({ length }) => length >= 16),
        timeoutMs: createTimeoutMs,
        read(answer, reading) {
          const made = sandboxIn(answer, reading);
          const isIt = Object.entries(sandbox.metadata)
            .every(([key, value]) => made.metadata[key] === value);
          if (!isIt) throw malformed("a sandbox that was not asked for");
          return made;
        },
      }, signal),
    patch: (id, metadata, { signal }) =>
      transport.exchange({
        method: "PATCH",
        path: `${pathOf(id)}/metadata`,
        body: metadata,
        also: [404],
        timeoutMs,
        read(answer, reading) {
          if (isAbsent(answer)) return false;
          sandboxIn(answer, reading); // A page of a proxy's would be no answer.
          return true;
        },
      }, signal),
    delete: (id, { signal }) =>
      transport.exchange({
        method: "DELETE",
        path: pathOf(id),
        also: [404],
        timeoutMs,
        read(answer) {
          if (isAbsent(answer)) return false;
          if (answer.status !== 204) throw malformed(`${answer.status} to a deletion`);
          return true;
        },
      }, signal),
    status: () => keeper.status(),
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  };
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

function pageIn(answer: Answer, reading: Reading): Page {
  const page = pageOf(json(answer), reading);
  if (page === undefined) throw malformed("not a page of sandboxes");
  return page;
}

function sandboxIn(answer: Answer, reading: Reading): Sandbox {
  const sandbox = sandboxOf(json(answer), reading);
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
