import assert from "node:assert/strict";
import { kubeconfigReader } from "./kubeconfig.ts";

type Parts = Readonly<Record<string, unknown>>;

/** A folder with a kubeconfig of these parts (as JSON, which is YAML) and these files beside it. */
async function readWith(
  parts: { readonly cluster?: Parts; readonly user?: Parts; readonly config?: Parts },
  files: Readonly<Record<string, string>> = {},
) {
  const folder = await Deno.makeTempDir({ prefix: "gdr-kubeconfig-" });
  try {
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}`, text);
    }
    const config = {
      "current-context": "here",
      contexts: [
        { name: "there", context: { cluster: "c2", user: "u2" } },
        { name: "here", context: { cluster: "c", user: "u" } },
      ],
      clusters: [
        { name: "c2", cluster: { server: "https://elsewhere" } },
        { name: "c", cluster: { server: "https://h:6443/", ...parts.cluster } },
      ],
      users: [{ name: "u2", user: { token: "wrong" } }, { name: "u", user: parts.user ?? {} }],
      ...parts.config,
    };
    await Deno.writeTextFile(`${folder}/config`, JSON.stringify(config));
    return await kubeconfigReader(`${folder}/config`, JSON.parse)();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("kubeconfigReader() reads the current context, with files relative to its own folder", async () => {
  const material = await readWith({
    cluster: { "certificate-authority": "ca.pem", "proxy-url": "http://proxy:3128" },
    user: { "client-certificate": "cert.pem", "client-key-data": btoa("KEY") },
  }, { "ca.pem": "CA", "cert.pem": "CERT" });
  assert.equal(material.server, "https://h:6443");
  assert.equal(material.ca, "CA");
  assert.equal(material.certificate?.cert, "CERT");
  assert.equal(material.certificate?.key.reveal(), "KEY");
  assert.equal(material.token, null);
  assert.equal(material.proxy, "http://proxy:3128");
});

Deno.test("kubeconfigReader() prefers tokenFile to token", async () => {
  const files = { "token.txt": "from-file\n" };
  const both = await readWith({ user: { token: "inline", tokenFile: "token.txt" } }, files);
  assert.equal(both.token?.reveal(), "from-file");
  assert.equal((await readWith({ user: { token: "inline" } })).token?.reveal(), "inline");
});

for (
  const [what, parts, message] of [
    ["a plugin", { user: { exec: { command: "aws" } } }, /exec is not supported/],
    ["a password", { user: { username: "u", password: "p4ss" } }, /username, password is not/],
    ["blind trust", { cluster: { "insecure-skip-tls-verify": true } }, /insecure-skip-tls-verify/],
    ["impersonation", { user: { as: "root" } }, /as is not supported/],
    ["half a certificate", { user: { "client-certificate-data": btoa("C") } }, /one is missing/],
    ["a token of two words", { user: { token: "s3cret two" } }, /no single word/],
    ["data that is no base64", { user: { "client-key-data": "s3cret!" } }, /is no base64/],
    ["a file that is not there", { user: { tokenFile: "absent" } }, /absent" .*: NotFound/],
    ["no context", { config: { "current-context": "x" } }, /none of its contexts/],
    ["no cluster", { config: { clusters: null } }, /none of its clusters/],
    ["no user", { config: { users: [] } }, /none of its users/],
    ["no server", { cluster: { server: "h:6443" } }, /no server of the form/],
  ] satisfies readonly (readonly [string, Parameters<typeof readWith>[0], RegExp])[]
) {
  Deno.test(`kubeconfigReader() refuses ${what}, without showing a secret`, async () => {
    await assert.rejects(readWith(parts), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /s3cret|p4ss/);
      return true;
    });
  });
}

Deno.test("kubeconfigReader() does not quote a file that is no YAML", async () => {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(path, "token: s3cret: x");
    const broken = () => {
      throw new Error("bad mapping near 's3cret'");
    };
    await assert.rejects(kubeconfigReader(path, broken)(), (error: Error) => {
      assert.match(error.message, /it is no YAML/);
      assert.doesNotMatch(Deno.inspect(error), /s3cret/);
      return true;
    });
  } finally {
    await Deno.remove(path);
  }
});
