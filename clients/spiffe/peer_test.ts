import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { createAuthority } from "../x509/trust_domain.ts";
import { fc } from "../../tests/support/property.ts";
import { readElements, toPem } from "./der.ts";
import { checkSpiffeId, expiryOf, serialOf, spiffeIdOf } from "./peer.ts";
import { socketPathOf } from "./workload_protocol.ts";

const TD = "test.example";
const ID = `spiffe://${TD}/ci/acme/app/build`;

async function certificate(uris: readonly string[]): Promise<Uint8Array> {
  const authority = await createAuthority(TD, Date.now());
  return (await authority.issue({ uris, now: Date.now(), ttlMs: 60_000 })).certificateDer;
}

Deno.test("spiffeIdOf() takes exactly one SPIFFE ID of the trust domain", async () => {
  const cases: [string, readonly string[], RegExp | "known"][] = [
    ["one", [ID], "known"],
    ["none", [], /no URI name/],
    ["two", [ID, `${ID}2`], /2 URI names/],
    ["the same twice", [ID, ID], /2 URI names/],
    ["two in one", [`${ID}, URI:spiffe://${TD}/other`], /not a SPIFFE ID/],
    ["another scheme", [`https://${TD}/ci/a/b/c`], /not a SPIFFE ID/],
    ["another trust domain", ["spiffe://other/ci/a/b/c"], /not of "test.example"/],
    ["no path", [`spiffe://${TD}`], /not a SPIFFE ID/],
    ["trailing slash", [`${ID}/`], /not a SPIFFE ID/],
  ];
  for (const [name, uris, expected] of cases) {
    const peer = spiffeIdOf(await certificate(uris), TD);
    if (expected === "known") assert.deepEqual(peer, { kind: "known", spiffeId: ID }, name);
    else assert.match(peer.kind === "refused" ? peer.why : "known", expected, name);
  }
});

Deno.test("spiffeIdOf() refuses a CA's certificate, nothing, and bytes that are no certificate", async () => {
  const authority = await createAuthority(TD, Date.now());
  const why = (der: Uint8Array | undefined | null) => {
    const peer = spiffeIdOf(der, TD);
    return peer.kind === "refused" ? peer.why : "known";
  };
  assert.match(why(authority.bundleDer), /CA/);
  assert.match(why(undefined), /no certificate/);
  assert.match(why(null), /no certificate/);
  assert.match(why(new Uint8Array()), /no certificate/);
  assert.match(why(new TextEncoder().encode("-----BEGIN")), /cannot be read/);
});

Deno.test("spiffeIdOf() never throws and never accepts a damaged certificate's other name", async () => {
  const der = await certificate([ID]);
  const damage = fc.array(fc.tuple(fc.nat(der.length - 1), fc.nat(255)), { maxLength: 4 });
  fc.assert(fc.property(damage, fc.nat(der.length), (changes, length) => {
    const copy = der.slice(0, length);
    for (const [at, value] of changes) copy[at] = value;
    const peer = spiffeIdOf(copy, TD);
    return peer.kind === "refused" || checkSpiffeId(peer.spiffeId, TD).kind === "known";
  }));
});

Deno.test("expiryOf() reads the end of validity in both of its forms, and null from anything else", async () => {
  for (const year of [2026, 2049, 2050, 2123]) {
    const now = Date.UTC(year, 1, 3, 4, 5, 6);
    const authority = await createAuthority(TD, now);
    const { certificateDer } = await authority.issue({ uris: [ID], now, ttlMs: 60_000 });
    assert.equal(expiryOf(certificateDer), now + 60_000, `${year}`);
    assert.equal(expiryOf(certificateDer), Date.parse(new X509Certificate(certificateDer).validTo));
    assert.equal(expiryOf(certificateDer.subarray(0, 100)), null);
  }
  assert.equal(expiryOf(new Uint8Array()), null);
});

Deno.test("checkSpiffeId() keeps to the standard's characters, segments and length", () => {
  for (const path of ["/a", "/ci/o/r/Deploy_1.2-x", `/${"a".repeat(1000)}`]) {
    assert.equal(checkSpiffeId(`spiffe://${TD}${path}`, TD).kind, "known", path);
  }
  for (
    const path of [
      "/a/../b",
      "/./a",
      "//a",
      "/a//b",
      "/%2e",
      "/ü",
      "/a?b",
      "/a#b",
      `/${"a".repeat(2100)}`,
    ]
  ) {
    assert.equal(checkSpiffeId(`spiffe://${TD}${path}`, TD).kind, "refused", path);
  }
  assert.equal(checkSpiffeId(`spiffe://TEST.example/a`, "TEST.example").kind, "refused");
});

Deno.test("readElements() splits concatenated certificates, and toPem() is read again by others", async () => {
  const [a, b] = [await certificate([ID]), await certificate([`${ID}2`])];
  const parts = readElements(new Uint8Array([...a, ...b]));
  assert.deepEqual(parts.map((p) => p.whole), [a, b]);
  const parsed = new X509Certificate(toPem("CERTIFICATE", a));
  assert.deepEqual(new Uint8Array(parsed.raw), a);
  assert.throws(() => readElements(a.slice(0, -1)), RangeError);
});

Deno.test("socketPathOf() takes both spellings of a unix socket and nothing else", () => {
  assert.equal(socketPathOf("unix:///run/spire/agent.sock"), "/run/spire/agent.sock");
  assert.equal(socketPathOf("unix:/run/spire/agent.sock"), "/run/spire/agent.sock");
  for (
    const odd of [
      "unix://run/agent.sock",
      "unix:////x",
      "tcp://127.0.0.1:1",
      "/run/x",
      "",
      "unix:x",
    ]
  ) {
    assert.equal(socketPathOf(odd), undefined, odd);
  }
});

Deno.test("serialOf() reads the serial as OpenSSL does, and null from what is no certificate", async () => {
  for (let i = 0; i < 20; i++) {
    const der = await certificate([ID]);
    assert.equal(serialOf(der), new X509Certificate(der).serialNumber);
  }
  assert.equal(serialOf(new Uint8Array([1, 2, 3])), null);
});
