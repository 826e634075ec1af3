import assert from "node:assert/strict";
import { Secret } from "../../lib/secret.ts";
import { createAddressProof } from "./address_proof.ts";

const SAID = { holder: "controller-0_one", address: "10.0.0.7:8080" };
const [OLD, NEW] = [new Secret("o".repeat(32)), new Secret("n".repeat(32))];

Deno.test("verify() believes what the same key has signed, and nothing that differs from it", () => {
  const proof = createAddressProof([OLD]);
  const signed = proof.sign(SAID) ?? assert.fail();
  assert.match(signed, /^[0-9a-f]{64}$/);
  assert.ok(proof.verify(SAID, signed));
  assert.ok(!proof.verify({ ...SAID, address: "192.0.2.1:80" }, signed));
  assert.ok(!proof.verify({ ...SAID, holder: "controller-1_two" }, signed));
  // No two pairs make the same text.
  assert.ok(!proof.verify({ holder: `${SAID.holder}","`, address: SAID.address }, signed));
  for (const wrong of [undefined, "", "0".repeat(64), signed.toUpperCase(), `${signed}00`]) {
    assert.ok(!proof.verify(SAID, wrong), String(wrong));
  }
});

Deno.test("verify() tries every key while they are rotated; sign() uses the first", () => {
  const before = createAddressProof([OLD]);
  const rotated = createAddressProof([NEW, OLD]);
  assert.ok(rotated.verify(SAID, before.sign(SAID) ?? undefined));
  assert.ok(createAddressProof([NEW]).verify(SAID, rotated.sign(SAID) ?? undefined));
  assert.ok(!before.verify(SAID, rotated.sign(SAID) ?? undefined));
});

Deno.test("sign() gives nothing and verify() believes nothing without keys", () => {
  const none = createAddressProof([]);
  assert.equal(none.sign(SAID), null);
  assert.ok(!none.verify(SAID, createAddressProof([OLD]).sign(SAID) ?? undefined));
});
