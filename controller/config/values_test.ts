import assert from "node:assert/strict";
import { isLoopback } from "./values.ts";

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
