import assert from "node:assert/strict";
import { bareHost } from "./host.ts";

Deno.test("bareHost() takes the brackets from an IPv6 address and leaves everything else", () => {
  assert.equal(bareHost(new URL("https://[::1]:8443").hostname), "::1");
  assert.equal(bareHost("127.0.0.1"), "127.0.0.1");
  assert.equal(bareHost("gitea.example"), "gitea.example");
});
