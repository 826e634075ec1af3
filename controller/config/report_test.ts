import assert from "node:assert/strict";
import { formatFaults } from "./report.ts";
import { quoted } from "./reader.ts";

Deno.test("formatFaults() shows message, variable, given and allowed of every fault", () => {
  const text = formatFaults([
    {
      variable: "SPIRE_AGENT_ID",
      given: "nothing",
      allowed: "a SPIFFE ID",
      message: "SPIRE_AGENT_ID is required for pod-worker",
    },
    {
      variable: "POD_CAPACITY",
      given: '"four"',
      allowed: "a whole number, 0 or more",
      message: "POD_CAPACITY must be a whole number, 0 or more",
    },
  ]);
  assert.equal(
    text,
    `Cannot start: 2 settings are wrong

  SPIRE_AGENT_ID is required for pod-worker
      variable  SPIRE_AGENT_ID
      given     nothing
      allowed   a SPIFFE ID

  POD_CAPACITY must be a whole number, 0 or more
      variable  POD_CAPACITY
      given     "four"
      allowed   a whole number, 0 or more

`,
  );
});

Deno.test("formatFaults() shows below them what may be a typing error of a missing one", () => {
  const fault = { variable: "A", given: "nothing", allowed: "a", message: "A is required" };
  const hint = "AA is not a setting of this program and is ignored: did you mean A?";
  const text = formatFaults([fault], [hint]);
  assert.ok(text.endsWith(`      allowed   a\n\n  ${hint}\n\n`), text);
});

Deno.test("quoted() keeps a value on one short line and hides credentials in URLs", () => {
  assert.equal(quoted("a\nb\u001b[31m\u202e"), '"a\\nb\\u001b[31m?"');
  assert.equal(quoted("nats://user:p@ss@host"), '"nats://***@host"');
  assert.equal(quoted("http://h/x?token=1"), '"http://h/x?***"');
  assert.equal(quoted("x".repeat(500)).length, 125);
});
