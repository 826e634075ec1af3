import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { retryForever } from "../../lib/retry.ts";
import { type Configured, outdatedOverrides } from "./actions_flags.ts";
import type { AuditEntry } from "./audit.ts";
import type { Engine } from "../engine.ts";
import type { BackendName } from "../model/ids.ts";
import type { FlagStore } from "../records.ts";

/** Variables behind what operators may override. */
const VARIABLE = {
  capacity: { pod: "POD_CAPACITY", vm: "VM_CAPACITY" },
  label: { pod: "VM_RUNNER_LABEL", vm: "VM_RUNNER_LABEL" },
} as const;

/**
 * Drops overrides of a backend whose configured value is another one than they replaced: a changed
 * configuration wins, and the audit says so. Reads the flags again in any case. Retried until it holds.
 */
export async function settleOverrides(
  deps: {
    readonly engine: Pick<Engine, "setFlags">;
    readonly flags: FlagStore;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly random: () => number;
    configured(backend: BackendName): Configured;
    audit(entry: AuditEntry): void;
    guard(): void;
  },
  backend: BackendName,
  signal: AbortSignal,
): Promise<void> {
  const configured = deps.configured(backend);
  const { old, dropped } = await retryForever(async () => {
    deps.guard();
    const stored = await deps.flags.read(backend, { signal });
    const { flags, dropped } = outdatedOverrides(stored.flags, configured);
    if (dropped.length > 0) await deps.flags.write(backend, { ...stored, flags }, { signal });
    deps.engine.setFlags(backend, flags);
    return { old: stored.flags, dropped };
  }, {
    clock: deps.clock,
    random: deps.random,
    signal,
    backoff: { firstMs: 250, maxMs: 5_000 },
    onError: (error) => deps.logger.warn("flags are read again", { backend, error }),
  });
  for (const name of dropped) {
    const { value = null, replaced = null } = old[name] ?? {};
    deps.audit({
      id: crypto.randomUUID(),
      at: deps.clock.now(),
      actor: "configuration",
      role: "admin",
      action: name,
      target: backend,
      before: { [name]: value },
      after: { [name]: configured[name] },
      note:
        `${VARIABLE[name][backend]} was ${
          JSON.stringify(replaced)
        } when it was overridden and is ` +
        `${JSON.stringify(configured[name])} now: the configuration wins`,
      requestId: "",
      result: "done",
      error: null,
    });
  }
}
