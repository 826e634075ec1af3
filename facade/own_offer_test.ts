import assert from "node:assert/strict";
import type { AssignmentId } from "../controller/model/ids.ts";
import { ownOffer, REFUSALS } from "./own_offer.ts";
import type { Offer, OfferState, Resolved } from "./registry.ts";

const caller = {
  assignment: "gitea-task-7" as AssignmentId,
  spiffeId: "spiffe://ci.test/job",
  serial: null,
  gate: "a".repeat(32),
};

function ask(found: Resolved, isComplete = true) {
  return ownOffer({ resolve: () => found, isComplete }, caller);
}

function offerIn(state: Partial<OfferState>): Resolved {
  return { kind: "found", offer: { state } as Offer };
}

Deno.test("ownOffer() refuses another identity's assignment, and another gate's", () => {
  assert.deepEqual(ask({ kind: "foreign" }), { kind: "refused", why: REFUSALS.foreign });
  const claimed = offerIn({ kind: "claimed", gate: "b".repeat(32) });
  assert.deepEqual(ask(claimed), { kind: "refused", why: REFUSALS.otherGate });
});

Deno.test("ownOffer() refuses what is not known only once recovery is complete", () => {
  assert.deepEqual(ask({ kind: "unknown" }, false), { kind: "starting" });
  assert.deepEqual(ask({ kind: "unknown" }), { kind: "refused", why: REFUSALS.unknown });
});

Deno.test("ownOffer() tells an executor whose record is lost from one that is not known", () => {
  assert.deepEqual(ask({ kind: "unproven" }, false), { kind: "unproven" });
  assert.deepEqual(ask({ kind: "unproven" }), { kind: "unproven" });
});

Deno.test("ownOffer() finds the caller's own, in whatever state", () => {
  for (const state of [{ kind: "offered" }, { kind: "removed" }] as const) {
    assert.equal(ask(offerIn(state)).kind, "found");
  }
  assert.equal(ask(offerIn({ kind: "claimed", gate: caller.gate })).kind, "found");
});
