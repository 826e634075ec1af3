import assert from "node:assert/strict";
import { fc } from "../../tests/support/property.ts";
import { ownPath } from "./own_path.ts";

const OWN = "http://localhost:8080";

/** Where a browser on a page of ours goes. */
function led(wanted: string): string {
  return new URL(ownPath(wanted), `${OWN}/sign-in`).href;
}

Deno.test("ownPath() leads to no other site, however that one is written", () => {
  const foreign = [
    "//evil.example",
    "///evil.example",
    "////evil.example/%2e%2e",
    "/\\evil.example",
    "\\\\evil.example",
    "\\/evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    "\u0000//evil.example",
    "/\u0000/evil.example",
    "/..//evil.example",
    "/%2e%2e//evil.example",
    "/.%2E//evil.example",
    "/%2e//evil.example",
    "/a/../..//evil.example",
    "/a/%2e%2e//evil.example",
    "/;//../..//evil.example",
    "http:evil.example",
    "http:/evil.example",
    "http:\\\\evil.example",
    "https://evil.example",
    "HTTPS://localhost:8080@evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "/／evil.example",
    "／／evil.example",
    "//evil。example",
    "/\u2028/evil.example",
    "/\ud800/evil.example",
  ];
  for (const wanted of foreign) {
    assert.equal(led(wanted), `${OWN}/`, JSON.stringify(wanted));
  }
});

Deno.test("ownPath() leaves encoded separators of a path as they are: browsers do, too", () => {
  for (const path of ["/%2fevil.example", "/%5Cevil.example", "/%09/evil.example", "/%0d%0aa:b"]) {
    assert.equal(ownPath(path), path);
    assert.equal(new URL(led(path)).origin, OWN);
  }
});

Deno.test("ownPath() leads to no other site for any text, and never back to sign-in", () => {
  const piece = fc.constantFrom(
    ..."/\\.?#@:;%\t\r\n \0",
    "%2e",
    "%2F",
    "%5c",
    "evil.example",
    "http:",
    "sign-in",
    "sign-out",
    "a",
    "\u3002",
    "\u2028",
  );
  const text = fc.array(piece, { maxLength: 10 }).map((pieces) => `/${pieces.join("")}`);
  fc.assert(
    fc.property(text, (wanted) => {
      const path = ownPath(wanted);
      assert.match(path, /^\/(?!\/)[\x21-\x7e]*$/);
      const { origin, pathname } = new URL(path, `${OWN}/sign-in`);
      assert.equal(origin, OWN);
      assert.doesNotMatch(pathname, /^\/sign-(in|out)(\/|$)/);
    }),
    { numRuns: 2_000, seed: 20_261_130 },
  );
});
