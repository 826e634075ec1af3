import assert from "node:assert/strict";
import { atLeast, roleNamed, roleOfGroups, ROLES } from "./role.ts";

Deno.test("atLeast() orders viewer, operator, admin", () => {
  const table = ROLES.map((held) => ROLES.map((needed) => atLeast(held, needed)));
  assert.deepEqual(table, [[true, false, false], [true, true, false], [true, true, true]]);
});

Deno.test("roleNamed() knows exact names only", () => {
  assert.deepEqual(["admin", "Admin", "", "root"].map(roleNamed), [
    "admin",
    undefined,
    undefined,
    undefined,
  ]);
});

Deno.test("roleOfGroups() gives the highest role, and none where no group is named", () => {
  const rules = [
    { group: "ops", role: "viewer" },
    { group: "ops:oncall", role: "admin" },
    { group: "dev", role: "operator" },
  ] as const;
  assert.equal(roleOfGroups(rules, ["dev", "ops"]), "operator");
  assert.equal(roleOfGroups(rules, ["ops", "ops:oncall"]), "admin");
  assert.equal(roleOfGroups(rules, ["OPS", "ops:", "*"]), undefined);
  assert.equal(roleOfGroups([...rules, { group: "*", role: "viewer" }], []), "viewer");
});
