import type { Recorder } from "../../controller/recorder.ts";
import type { Logger } from "../../lib/logger.ts";
import { backoffMs } from "../../lib/retry.ts";
import type { HealthKeeper } from "../../lib/source_health.ts";
import { failureOfTransport } from "./answer.ts";
import { KubernetesError } from "./error.ts";
import type { Pace } from "./pace.ts";
import { malformed, Refused } from "./transport.ts";
import {
  type Collection,
  type Exchange,
  listAll,
  Lost,
  openWatch,
  type PlainObject,
} from "./watch_protocol.ts";

/** What is listed and watched. */
export interface WatchTarget<T> extends Collection {
  /** Its name in metrics and logs, one of a few, e.g. `pods`. */
  readonly source: string;
  /** Reads one object; undefined or a throw leaves it out (a throw is logged). */
  readonly decode: (object: PlainObject) => T | undefined;
  /** Runs each list when others of the same collection leave it room; at once when it is not given. */
  readonly listPace?: Pace;
}

/**
 * What happened. `listed` is everything that there is now and replaces all that was told before: it
 * comes first, and again whenever the server has forgotten where we were. Then each change in the
 * server's order, once: `changed` for a new or modified object, `gone` for a deleted one (or one that
 * the selectors no longer match) in its last state.
 */
export type WatchEvent<T> =
  | { readonly kind: "listed"; readonly items: readonly T[] }
  | { readonly kind: "changed"; readonly item: T }
  | { readonly kind: "gone"; readonly item: T };

/** What {@link listAndWatch} works with. */
export interface WatchDeps extends Exchange {
  readonly random: () => number;
  readonly logger: Logger;
  /** Told of the list and of every event and bookmark: the age of the last one is a metric. */
  readonly recorder: Pick<Recorder, "watchEvent">;
  readonly keeper: Pick<HealthKeeper, "ok" | "failed" | "interrupted">;
}

/** Between the beginnings of two lists. */
const LIST_SPACING_MS = 1_000;
const BACKOFF = { firstMs: 500, maxMs: 10_000 };
/** The same trouble is not logged more often. */
const REPEAT_LOG_MS = 30_000;
/** A watch that ends sooner is a failure, lest we ask again in a tight loop. */
const SHORT_MS = 1_000;

/**
 * Lists, then watches from there, for ever: a watch that ends, breaks or falls silent is resumed from
 * the last event or bookmark, so that nothing is missed and nothing told twice; when the server has
 * forgotten that place (410), it lists again, at most once a second. What fails is tried again after
 * a growing, random wait. Ends, without an error, only when the signal aborts.
 *
 *     list --> watch --end, cut, silence--> watch from the last place
 *      ^         |
 *      +---------+-- 410, nonsense, history turned back
 *
 * Nothing is read ahead of the consumer but what the sockets hold: the server ends the watch of a
 * client that is too slow, and it is resumed.
 */
export async function* listAndWatch<T>(
  target: WatchTarget<T>,
  deps: WatchDeps,
): AsyncGenerator<WatchEvent<T>, void> {
  const { signal, clock, random, recorder, keeper } = deps;
  const logger = deps.logger.child({ source: target.source });
  let place: string | null = null;
  let failures = 0;
  let listedAt = -Infinity;
  const heard = () => {
    keeper.ok();
    recorder.watchEvent(target.source);
  };
  let said = { text: "", at: -Infinity, unsaid: 0 };

  while (!signal.aborted) {
    let openedAt = clock.monotonic();
    let failure: unknown;
    try {
      if (place === null) {
        const wait = listedAt + LIST_SPACING_MS * (1 + random() / 4) - clock.monotonic();
        if (wait > 0) await clock.sleep(wait, signal);
        const list = () => {
          listedAt = clock.monotonic();
          return listAll(target, deps);
        };
        const { objects, version } = await (target.listPace?.(list, signal) ?? list());
        place = version;
        heard();
        yield { kind: "listed", items: objects.flatMap((object) => read(target, object, logger)) };
      }
      openedAt = clock.monotonic();
      await using watch = await openWatch(target, place, deps);
      keeper.ok();
      keeper.interrupted(target.source, null);
      for await (const event of watch.events) {
        place = following(place, event.version);
        failures = 0;
        heard();
        if (event.kind === "bookmark") continue;
        for (const item of read(target, event.object, logger)) yield { kind: event.kind, item };
      }
      if (clock.monotonic() - openedAt < SHORT_MS) {
        failure = new Refused(malformed("a watch that ended at once"));
      }
    } catch (error) {
      failure = error;
    }
    if (signal.aborted) return;
    if (failure === undefined) continue;

    if (clock.monotonic() - openedAt >= BACKOFF.maxMs) failures = 0;
    failures += 1;
    if (failure instanceof Lost) place = null;
    const problem = problemOf(target, failure);
    // Everybody meets this after a restart of the server: no trouble, and the list is spaced.
    if (failure instanceof Lost && failure.kind === "expired" && failures === 1) {
      logger.info("kubernetes watch expired: everything is listed again");
      continue;
    }
    const now = clock.monotonic();
    if (said.text === problem.message && now - said.at < REPEAT_LOG_MS) {
      said.unsaid += 1;
    } else {
      const fields = { error: problem, listAgain: place === null, repeated: said.unsaid };
      logger.warn("kubernetes watch interrupted", fields);
      said = { text: problem.message, at: now, unsaid: 0 };
    }
    if (problem.unanswered) keeper.failed(problem);
    else keeper.ok();
    keeper.interrupted(target.source, problem);
    const wait = Math.max(backoffMs(failures, BACKOFF, random), problem.retryAfterMs ?? 0);
    await clock.sleep(wait, signal).catch(() => {});
  }
}

/** The object as the consumer wants it, or nothing: one that cannot be read must not hide the others. */
function read<T>({ decode }: WatchTarget<T>, object: PlainObject, logger: Logger): T[] {
  try {
    const item = decode(object);
    return item === undefined ? [] : [item];
  } catch (error) {
    logger.warn("kubernetes object left out: it cannot be read", { error });
    return [];
  }
}

/**
 * The place after an event. Versions only grow (they are whole numbers, comparable within a resource
 * since Kubernetes 1.35); a smaller one means that the server's store was set back to a backup, and
 * that what we know of is no more.
 */
function following(place: string, version: string): string {
  const whole = /^\d{1,30}$/;
  if (whole.test(place) && whole.test(version) && BigInt(version) < BigInt(place)) {
    throw new Lost("nonsense", "the server's history has turned back");
  }
  return version;
}

function problemOf(target: WatchTarget<unknown>, error: unknown): KubernetesError {
  const failure = error instanceof Refused
    ? error.failure
    : error instanceof Lost
    ? { ...malformed(error.message), reason: "Expired" }
    : failureOfTransport(error);
  return new KubernetesError(`Watch "${target.source}"`, failure, { cause: error });
}
