import assert from "node:assert/strict";
import { headerList, isLoopback } from "./values.ts";

Deno.test("isLoopback() knows the names and addresses of this machine, however they are spelled", () => {
  const ours = ["localhost", "LOCALHOST", "127.0.0.1", "127.3.2.1", "127.1", "::1", "[::1]"];
  for (const name of ours) assert.equal(isLoopback(name), true, name);
  const others = [
    "0.0.0.0",
    "::",
    "10.0.0.7",
    "gdr.example.org",
    "127.evil.example",
    "localhost.a",
  ];
  for (const name of others) assert.equal(isLoopback(name), false, name);
});

Deno.test("headerList() reads names in any case and percent-encoded values", () => {
  assert.deepEqual(headerList(" Authorization = Bearer%20a%3Db , x-a=1"), {
    authorization: "Bearer a=b",
    "x-a": "1",
  });
  for (const odd of ["", "a", "=b", "a=%", "a=%0d%0ax: y", "a b=c", "a=1,,b=2", "a=\u00e9"]) {
    assert.equal(headerList(odd), undefined, odd);
  }
});
