import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { retryForever } from "../lib/retry.ts";
import type { Gitea } from "./gitea.ts";
import type { GiteaWatch } from "./gitea_status.ts";

/** What {@link createDeclarer} needs. */
export interface DeclarerDeps {
  readonly gitea: Pick<Gitea, "declare">;
  readonly watch: GiteaWatch;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  /** Labels to be declared now. */
  labels(): readonly string[];
  /** Resolves at the next change of {@link labels}; rejects when aborted. */
  labelsChanged(signal: AbortSignal): Promise<void>;
  /** Called after a label was given (back). */
  onGiven(): void;
  /** Called with the value of `X-Gitea-Actions-Capabilities` after each Declare. */
  onServerCapabilities(value: string | null): void;
  readonly version: string;
  readonly capabilities: readonly string[];
  readonly errorBackoffMs: number;
}

/** Keeps Gitea's idea of our labels right. */
export interface Declarer {
  /** Declares until Gitea has accepted; rejects only with the signal's reason. */
  declare(signal: AbortSignal): Promise<void>;
  /** Declares again whenever the set has changed, until aborted. */
  follow(signal: AbortSignal): Promise<void>;
  /** What Gitea has; null before the first. */
  declared(): Declared | null;
}

/** Labels that Gitea has. */
export interface Declared {
  readonly labels: readonly string[];
  /** Of the last Declare, milliseconds since the epoch. */
  readonly since: number;
  /** Since when each of them has stood there without a break, as far as this process knows. */
  readonly labelSince: ReadonlyMap<string, number>;
}

/** Makes a {@link Declarer}. */
export function createDeclarer(deps: DeclarerDeps): Declarer {
  const { clock, watch } = deps;
  let declared: Declared | null = null;
  const declare = async (signal: AbortSignal) => {
    const labels = await retryForever(async () => {
      // Read at each try: they may have changed while Gitea was away.
      const labels = deps.labels();
      const { capabilities, version } = deps;
      const answer = await deps.gitea.declare({ version, labels, capabilities }, { signal });
      deps.onServerCapabilities(answer.serverCapabilities);
      return labels;
    }, {
      clock,
      random: deps.random,
      signal,
      backoff: { firstMs: deps.errorBackoffMs, maxMs: deps.errorBackoffMs },
      onError: (error) => watch.failed(error),
    });
    watch.ok();
    const before = declared?.labels ?? [];
    const since = clock.now();
    const labelSince = new Map(
      labels.map((label) => [label, declared?.labelSince.get(label) ?? since]),
    );
    declared = { labels, since, labelSince };
    deps.logger.info("labels declared", { component: "scheduler", labels });
    if (labels.some((label) => !before.includes(label))) deps.onGiven();
  };
  return {
    declare,
    async follow(signal) {
      while (!signal.aborted) {
        // Asked before the labels are read, so that no change falls in between.
        const changed = deps.labelsChanged(signal);
        changed.catch(() => {});
        if (!sameSet(deps.labels(), declared?.labels ?? [])) await declare(signal);
        await changed;
      }
    },
    declared: () => declared,
  };
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((label) => b.includes(label));
}
