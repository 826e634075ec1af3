import { createHash, createSign, generateKeyPairSync } from "node:crypto";
import { endless } from "../support/endless.ts";

/** What a provider of OpenID Connect says of who signs in, and what it does wrong. */
export interface ProviderBehaviour {
  claims: Readonly<Record<string, unknown>>;
  /** Signs with a key that it does not publish. */
  foreignKey: boolean;
  /** Leaves this nonce in the ID token in place of the one asked for; null = the right one. */
  nonce: string | null;
  /** `id:secret` that its token endpoint asks for, and compares as Gitea does, undecoded; null = none. */
  credentials: string | null;
  /** Path whose answer never ends; null = none. */
  endless: string | null;
}

/** A provider on loopback; what was asked of its token endpoint is kept. */
export interface TestProvider extends AsyncDisposable {
  readonly issuer: string;
  readonly behaviour: ProviderBehaviour;
  readonly asked: URLSearchParams[];
  /** Signs in: the query that the browser brings back from an authorization URL. */
  approve(url: string): URLSearchParams;
}

/** Starts {@link TestProvider}: discovery, keys, and codes that it gives out once, bound by PKCE. */
export function startOidcProvider(): TestProvider {
  const pair = () => generateKeyPairSync("rsa", { modulusLength: 2048 });
  const [own, other] = [pair(), pair()];
  const behaviour: ProviderBehaviour = {
    claims: {},
    foreignKey: false,
    nonce: null,
    credentials: null,
    endless: null,
  };
  const codes = new Map<string, URLSearchParams>();
  const asked: URLSearchParams[] = [];
  const encoded = (value: unknown) =>
    new TextEncoder().encode(JSON.stringify(value)).toBase64({
      alphabet: "base64url",
      omitPadding: true,
    });

  const idToken = (request: URLSearchParams): string => {
    const now = Math.floor(Date.now() / 1_000);
    const head = encoded({ alg: "RS256", kid: "own" });
    const body = encoded({
      iss: server.issuer,
      sub: "7",
      aud: request.get("client_id"),
      iat: now,
      exp: now + 60,
      nonce: behaviour.nonce ?? request.get("nonce"),
      ...behaviour.claims,
    });
    const key = (behaviour.foreignKey ? other : own).privateKey;
    const signature = createSign("RSA-SHA256").update(`${head}.${body}`).sign(key, "base64url");
    return `${head}.${body}.${signature}`;
  };

  const token = (form: URLSearchParams): Response => {
    asked.push(form);
    const request = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const challenge = createHash("sha256").update(form.get("code_verifier") ?? "").digest(
      "base64url",
    );
    const fits = request !== undefined && request.get("code_challenge") === challenge &&
      request.get("redirect_uri") === form.get("redirect_uri");
    if (!fits) return Response.json({ error: "invalid_grant" }, { status: 400 });
    return Response.json({ access_token: "at", token_type: "bearer", id_token: idToken(request) });
  };

  const http = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const { issuer } = server;
    if (pathname === behaviour.endless) {
      return new Response(endless(), { headers: { "content-type": "application/json" } });
    }
    switch (pathname) {
      case "/.well-known/openid-configuration":
        return Response.json({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["RS256"],
          code_challenge_methods_supported: ["S256"],
        });
      case "/keys":
        return Response.json({
          keys: [{
            ...own.publicKey.export({ format: "jwk" }),
            kid: "own",
            use: "sig",
            alg: "RS256",
          }],
        });
      case "/token":
        if (
          behaviour.credentials !== null &&
          request.headers.get("authorization") !== `Basic ${btoa(behaviour.credentials)}`
        ) return Response.json({ error: "invalid_client" }, { status: 401 });
        return token(new URLSearchParams(await request.text()));
      default:
        return new Response(null, { status: 404 });
    }
  });
  const server: TestProvider = {
    issuer: `http://127.0.0.1:${http.addr.port}`,
    behaviour,
    asked,
    approve(url) {
      const { searchParams } = new URL(url);
      const code = crypto.randomUUID();
      codes.set(code, searchParams);
      return new URLSearchParams({ code, state: searchParams.get("state") ?? "" });
    },
    [Symbol.asyncDispose]: () => http.shutdown(),
  };
  return server;
}
