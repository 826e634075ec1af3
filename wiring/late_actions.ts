import { createActionAudit } from "../controller/actions/action_audit.ts";
import { targetOf } from "../controller/actions/action_kinds.ts";
import type { ActionOutcome, Actions } from "../controller/actions/actions.ts";
import type { AuditEntry, AuditLog } from "../controller/actions/audit.ts";
import type { LeaderView } from "../controller/views/views.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Upstream } from "../web/standby.ts";

/** Actions that can be given later: pages are up before anything can be done. */
export interface LateActions extends Actions {
  become(actions: Actions): void;
  /** Where refusals of a process that does not lead are kept from now on, those until now among them. */
  auditTo(audit: Pick<AuditLog, "append">): void;
}

/** Refusals that are kept until there is an audit: NATS may be away for long. */
const MOST_EARLY = 100;

/**
 * Makes {@link LateActions}; while this process does not lead they are refused with who does. That is
 * audited without the lead: it says what this process itself has done, and changes nothing else.
 */
export function createLateActions(
  leader: () => LeaderView,
  deps: {
    /** Where the leader's dashboard is, as far as this process knows. */
    readonly upstream: () => Pick<Upstream, "address"> | null;
    readonly clock: Pick<Clock, "now">;
    readonly logger: Logger;
  },
): LateActions {
  const logger = deps.logger.child({ component: "actions" });
  let current: Actions | null = null;
  let audit: Pick<AuditLog, "append"> | null = null;
  const early: AuditEntry[] = [];
  const keep = (entry: AuditEntry) => {
    if (audit !== null) return audit.append(entry);
    early.push(entry);
    if (early.length <= MOST_EARLY) return;
    const lost = early.shift();
    // The log has had it when it happened.
    logger.error("an audit entry is dropped", { id: lost?.id, action: lost?.action });
  };
  const own = createActionAudit({ audit: { append: keep }, clock: deps.clock, logger });
  const leading = () => leader().leading ? current : null;
  const refused: Actions["refused"] = (action, request, error) =>
    (leading() ?? own).refused(action, request, error);
  return {
    become(actions) {
      current = actions;
    },
    auditTo(log) {
      audit = log;
      for (const entry of early.splice(0)) log.append(entry);
    },
    act(action, request, call) {
      const actions = leading();
      if (actions !== null) return actions.act(action, request, call);
      const { holder, self } = leader();
      const detail = holder !== null && holder !== self
        ? `Ask the leader: it is "${holder}"${at(deps.upstream())}`
        : "Try again in a moment: this process does not lead yet";
      refused({ kind: action.kind, target: targetOf(action) }, request, detail);
      return Promise.resolve<ActionOutcome>({ kind: "unavailable", detail });
    },
    preview: (id, tier) => leading()?.preview(id, tier),
    tagOf: (target) => leading()?.tagOf(target) ?? null,
    refused,
  };
}

function at(leader: Pick<Upstream, "address"> | null): string {
  return leader === null ? "" : ` at ${leader.address}`;
}
