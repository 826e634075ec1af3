import type { NodeRequest, NodeResponse } from "../clients/connect/node_handler.ts";
import type { Logger } from "../lib/logger.ts";
import { oneLine } from "../lib/one_line.ts";
import { parseGatePhases } from "../controller/model/gate_phase.ts";
import type { AssignmentId } from "../controller/model/ids.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import { type Access, EXPIRED } from "./access.ts";
import type { Caller } from "./caller.ts";
import { NO_PART, ownOffer, STARTING } from "./own_offer.ts";
import { type CallListeners, timeCall, TRACEPARENT } from "./call_observer.ts";
import { type Problem, ProblemError, readJsonBody, sendProblem } from "./problem.ts";
import type { Registry } from "./registry.ts";
import type { Relay } from "./relay.ts";

/** What {@link executorCalls} works with. */
export interface ExecutorCallsDeps extends CallListeners {
  readonly registry: Registry;
  readonly events: ExecutorEvents;
  readonly logger: Logger;
  /** The executor is about to go, or its job has ended: what is left may be finished. */
  exited(relay: Relay): void;
}

/**
 * The gate's own calls (docs/architecture.md, "Between gate and facade"): answers
 * `POST /executor/v1/{heartbeat,terminating,exit}` with 204, or problem+json. Never rejects; what
 * goes wrong on our side is 503.
 */
export function executorCalls(
  deps: ExecutorCallsDeps,
): (request: NodeRequest, response: NodeResponse, access: Access) => Promise<void> {
  const { registry, logger } = deps;

  const refuse = (caller: Caller | null, why: string) => {
    logger.warn("executor refused", { assignment: caller?.assignment ?? null, detail: why });
    return new ProblemError(403, NO_PART);
  };
  const authenticate = (access: Access): Caller => {
    if (access.kind === "busy") throw new ProblemError(429, `too many calls: ${access.why}`);
    if (access.kind === "expired") throw new ProblemError(503, EXPIRED);
    if (access.kind === "refused") throw refuse(null, access.why);
    const judged = access.caller;
    if (judged.kind === "refused") throw refuse(null, judged.why);
    return judged.caller;
  };
  const answer = (name: string, caller: Caller, body: Body): void => {
    const own = ownOffer(registry, caller);
    if (own.kind === "refused") throw refuse(caller, own.why);
    if (own.kind === "unproven" && name === "heartbeat") return show(deps.events, caller, body);
    if (own.kind !== "found") throw new ProblemError(503, STARTING);
    const { state } = own.offer;
    // Before the claim there is no relay.
    const relay = state.kind === "offered" ? null : state.relay;
    tell(deps, { name, caller, relay, body });
  };

  return async (request, response, access) => {
    const answered = timeCall(deps);
    const name = /^\/executor\/v1\/(heartbeat|terminating|exit)$/.exec(request.url ?? "")?.[1];
    let status: number = 204;
    let assignment: AssignmentId | null = null;
    try {
      if (name === undefined || request.method !== "POST") {
        throw new ProblemError(404, "no such call");
      }
      const caller = authenticate(access);
      ({ assignment } = caller);
      const body = await readJsonBody(request);
      answer(name, caller, body);
      response.statusCode = 204;
      response.end();
    } catch (error) {
      const problem: Problem = error instanceof ProblemError
        ? error.problem
        : { status: 503, title: "the controller is in trouble: try again" };
      if (!(error instanceof ProblemError)) logger.error("executor's call failed", { error });
      status = problem.status;
      sendProblem(response, problem);
    }
    const parent = request.headers[TRACEPARENT];
    answered({
      method: name ?? "other",
      code: String(status),
      assignment,
      parent: typeof parent === "string" ? parent : null,
    });
  };
}

type Body = Readonly<Record<string, unknown>>;

/** Passes on what the gate of an executor without record has shown, if it has shown anything. */
function show(events: Pick<ExecutorEvents, "shown">, caller: Caller, body: Body): void {
  const { assignment, gate } = caller;
  const { logOffset } = body;
  if (typeof logOffset === "number") {
    if (!Number.isSafeInteger(logOffset) || logOffset < 0) {
      throw new ProblemError(400, "logOffset must be a whole number, 0 or more");
    }
    return events.shown(assignment, gate, { kind: "holds", logOffset });
  }
  if (body["holdsTask"] === true) events.shown(assignment, gate, { kind: "holds_somewhere" });
}

/** Passes on what a gate says of itself. */
function tell(
  { events, exited }: Pick<ExecutorCallsDeps, "events" | "exited">,
  call: {
    readonly name: string;
    readonly caller: Caller;
    readonly relay: Relay | null;
    readonly body: Body;
  },
): void {
  const { caller: { assignment, gate }, relay, body } = call;
  switch (call.name) {
    case "heartbeat":
      return events.heartbeat(assignment, { gate, holdsTask: body["holdsTask"] === true });
    case "terminating": {
      // The job is over: its executor is ended because of that.
      if (relay !== null && relay.outcome !== null) return;
      const why = wordsOf(body["why"]) || "the executor is being terminated";
      relay?.terminating(why);
      return events.terminating(assignment, why);
    }
    case "exit": {
      const { code } = body;
      // 1e300 is an integer, too, but none that a receiver of traces could read.
      if (typeof code !== "number" || !Number.isSafeInteger(code)) {
        throw new ProblemError(400, "code must be an integer");
      }
      if (relay !== null) exited(relay);
      const delivered = body["delivered"] === true;
      const phases = parseGatePhases(body["phases"]);
      return events.exited(assignment, {
        delivered,
        code,
        detail: wordsOf(body["detail"]),
        phases,
      });
    }
    default:
      throw new ProblemError(404, "no such call");
  }
}

function wordsOf(value: unknown): string {
  return typeof value === "string" ? oneLine(value, 500) : "";
}
