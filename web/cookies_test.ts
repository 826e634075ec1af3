import assert from "node:assert/strict";
import { cookieHeader, readCookie } from "./cookies.ts";

const headers = (cookie: string) => new Headers({ cookie });

Deno.test("readCookie() takes a value whole, and none of a name that comes twice", () => {
  assert.equal(readCookie(headers("x=1; lang=zh-CN; lang2=en"), "lang"), "zh-CN");
  assert.equal(readCookie(headers("a=b=c=="), "a"), "b=c==");
  assert.equal(readCookie(headers("a=1; a=2"), "a"), undefined);
  assert.equal(readCookie(new Headers(), "a"), undefined);
});

Deno.test("cookieHeader() lets no script read it, and no other site's form send it", () => {
  assert.equal(
    cookieHeader("a", "b", { secure: true, maxAgeSeconds: 0 }),
    "a=b; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure",
  );
});
