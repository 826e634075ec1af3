import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { SelfTestView } from "../views/operating_views.ts";

/** One thing that must hold. It may be tried at any time and changes nothing for any job. */
export interface SelfTest {
  readonly name: string;
  /** Resolves to what it found, for people; rejects with what is the matter and the way out. */
  run(signal: AbortSignal): Promise<string>;
}

/** Self tests with how they last went. */
export interface SelfTests {
  /** In the order in which they were given; `unknown` until the first run. */
  list(): readonly SelfTestView[];
  /**
   * Runs all at once; a run that goes on already is joined. Resolves when all have ended, at the latest
   * when `signal` aborts. Never rejects.
   */
  run(signal: AbortSignal): Promise<void>;
}

const PATIENCE_MS = 10_000;

/** Makes {@link SelfTests}; each test has ten seconds, whatever it does. */
export function createSelfTests(
  tests: readonly SelfTest[],
  { clock }: { readonly clock: Pick<Clock, "now" | "monotonic" | "timeout"> },
): SelfTests {
  const results = new Map<string, SelfTestView>();
  let going: Promise<void> | null = null;

  const runOne = async (test: SelfTest, signal: AbortSignal) => {
    const { name } = test;
    const before = results.get(name);
    results.set(name, {
      name,
      state: "running",
      detail: null,
      at: before?.at ?? null,
      tookMs: null,
    });
    const began = clock.monotonic();
    const end = (state: "ok" | "failed", detail: string) =>
      results.set(name, {
        name,
        state,
        detail,
        at: new Date(clock.now()).toISOString(),
        tookMs: Math.round(clock.monotonic() - began),
      });
    using patience = clock.timeout(PATIENCE_MS);
    try {
      const stop = AbortSignal.any([signal, patience.signal]);
      end("ok", await abortable(test.run(stop), stop));
    } catch (error) {
      const why = patience.signal.aborted
        ? `no answer within ${PATIENCE_MS / 1_000} s`
        : error instanceof Error
        ? error.message
        : String(error);
      end("failed", why);
    }
  };

  return {
    list: () =>
      tests.map(({ name }) =>
        results.get(name) ?? { name, state: "unknown", detail: null, at: null, tookMs: null }
      ),
    async run(signal) {
      going ??= Promise.all(tests.map((test) => runOne(test, signal)))
        .then(() => {}).finally(() => going = null);
      // Whoever has begun it may have more time than whoever joins it.
      await abortable(going, signal).catch(() => {});
    },
  };
}
