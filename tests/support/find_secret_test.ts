import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { findSecretInFiles, holdsSecret } from "./find_secret.ts";

const SECRET = "planted-7f3a9c-secret";
const bytes = (text: string) => new TextEncoder().encode(text);
const zip = (data: Uint8Array) => new Uint8Array(gzipSync(data));
const text = `{"a":1,"secret":"${SECRET}","z":"${"filler ".repeat(20)}"}`;

const packed: [string, Uint8Array][] = [
  ["plain", bytes(text)],
  ["base64", bytes(bytes(text).toBase64())],
  ["base64 behind other letters", bytes(`abc${bytes(text).toBase64()}xyz=`)],
  ["url-safe base64", bytes(bytes(`??>>~~${text}`).toBase64({ alphabet: "base64url" }))],
  ["gzip", zip(bytes(text))],
  ["gzip among other bytes", new Uint8Array([9, 31, 7, ...zip(bytes(text)), 1, 2, 3])],
  ["gzip in base64 in JSON", bytes(JSON.stringify({ task: zip(bytes(text)).toBase64() }))],
  ["base64 in gzip in base64", bytes(zip(bytes(bytes(text).toBase64())).toBase64())],
];
for (const [name, data] of packed) {
  Deno.test(`holdsSecret() finds a secret in ${name}`, () => {
    assert.ok(holdsSecret(data, SECRET));
    assert.ok(!holdsSecret(data, "another-secret-value"));
  });
}

Deno.test("findSecretInFiles() names the files", async () => {
  const dir = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${dir}/a/b`, { recursive: true });
    await Deno.writeFile(`${dir}/a/b/with`, zip(bytes(text)));
    await Deno.writeFile(`${dir}/a/without`, bytes("nothing"));
    assert.deepEqual(await findSecretInFiles(dir, SECRET), [`${dir}/a/b/with`]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
