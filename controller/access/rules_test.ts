import assert from "node:assert/strict";
import type { ActionKind } from "../actions/action_kinds.ts";
import { faultOfRole, roleFor } from "./rules.ts";

const TABLE: Readonly<Record<ActionKind, string>> = {
  "cordon": "operator",
  "drain": "operator",
  "resume": "operator",
  "undo": "operator",
  "cancel": "operator",
  "retry": "operator",
  "release": "operator",
  "release-executor": "operator",
  "capacity": "admin",
  "label": "admin",
  "step-down": "admin",
};

for (const [kind, role] of Object.entries(TABLE) as [ActionKind, string][]) {
  Deno.test(`roleFor() needs ${role} for ${kind}`, () => {
    assert.equal(roleFor({ kind }), role);
  });
}

Deno.test("roleFor() needs admin to forget, whatever is forgotten", () => {
  for (const kind of ["release", "release-executor"] as const) {
    assert.equal(roleFor({ kind, tier: "forget" }), "admin");
    assert.equal(roleFor({ kind, tier: "forced" }), "operator");
  }
});

Deno.test("faultOfRole() names both roles, and is null where the role suffices", () => {
  assert.match(faultOfRole("viewer", "operator") ?? "", /role operator: yours is viewer/);
  assert.match(faultOfRole("operator", "admin") ?? "", /role admin: yours is operator/);
  assert.equal(faultOfRole("admin", "operator"), null);
});
