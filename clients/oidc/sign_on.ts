import * as oidc from "openid-client";
import {
  type SignedOn,
  type SignOn,
  SignOnError,
  type SignOnTransaction,
} from "../../controller/access/sign_on.ts";
import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Secret } from "../../lib/secret.ts";

/** Keys and addresses of the provider are read again after so long. */
const KNOWN_MS = 3_600_000;
const TIMEOUT_SECONDS = 5;
/** `groups` is what Gitea and others call the scope of the claim of that name. */
const SCOPE = "openid profile groups";
const MOST_GROUPS = 1_000;

/**
 * Makes {@link SignOn} by the authorization code flow of OpenID Connect with PKCE (S256), `state` and
 * `nonce`. The ID token's signature, issuer, audience and times are checked by `openid-client`.
 */
export function createSignOn(options: {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret | null;
  /** Sent as it is, and nothing else. */
  readonly redirectUri: string;
  readonly clock: Pick<Clock, "monotonic">;
}): SignOn {
  const { clock, redirectUri } = options;
  let known: { readonly config: oidc.Configuration; readonly until: number } | undefined;

  const configuration = async (): Promise<oidc.Configuration> => {
    if (known !== undefined && clock.monotonic() < known.until) return known.config;
    const config = await discover(options);
    known = { config, until: clock.monotonic() + KNOWN_MS };
    return config;
  };

  return {
    async start(signal) {
      return await named("Ask the provider", signal, async () => {
        const config = await configuration();
        const transaction: SignOnTransaction = {
          state: oidc.randomState(),
          nonce: oidc.randomNonce(),
          verifier: oidc.randomPKCECodeVerifier(),
        };
        const url = oidc.buildAuthorizationUrl(config, {
          redirect_uri: redirectUri,
          scope: SCOPE,
          state: transaction.state,
          nonce: transaction.nonce,
          code_challenge: await oidc.calculatePKCECodeChallenge(transaction.verifier),
          code_challenge_method: "S256",
        });
        return { url: url.href, transaction };
      });
    },
    async finish(query, { state, nonce, verifier }, signal) {
      return await named("Take the provider's answer", signal, async () => {
        const config = await configuration();
        // Its path is the redirect URI that is sent again, exactly, with the code.
        const back = new URL(redirectUri);
        back.search = query.toString();
        const tokens = await oidc.authorizationCodeGrant(config, back, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        return await whoOf(config, tokens);
      });
    },
  };
}

async function discover(
  { issuer, clientId, clientSecret }: {
    readonly issuer: string;
    readonly clientId: string;
    readonly clientSecret: Secret | null;
  },
): Promise<oidc.Configuration> {
  const url = new URL(issuer);
  const authentication = clientSecret === null ? oidc.None() : basic(clientId, clientSecret);
  // Without it the ID token's signature is not looked at, because TLS has brought it.
  const execute = [oidc.enableNonRepudiationChecks];
  // The configuration has let plain http through for loopback alone.
  if (url.protocol === "http:") execute.push(oidc.allowInsecureRequests);
  return await oidc.discovery(url, clientId, {}, authentication, {
    execute,
    timeout: TIMEOUT_SECONDS,
  });
}

/**
 * `client_secret_basic` with id and secret form-encoded (RFC 6749 2.3.1), which leaves `*-._` as they are.
 * The library's own encodes those, too, and Gitea (1.26) decodes nothing: its ids have hyphens, its
 * secrets an underscore, and it would know neither.
 */
function basic(clientId: string, secret: Secret): oidc.ClientAuth {
  const encoded = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);
  return (_server, _client, _body, headers) => {
    const credentials = btoa(`${encoded(clientId)}:${encoded(secret.reveal())}`);
    headers.set("authorization", `Basic ${credentials}`);
  };
}

/** Who signed in, with groups of the ID token or, when it has none, of the user's information. */
async function whoOf(
  config: oidc.Configuration,
  tokens: Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>,
): Promise<SignedOn> {
  const claims = tokens.claims();
  if (claims === undefined) {
    throw new SignOnError("refused", "Take the provider's answer: it has no ID token");
  }
  const told =
    claims.groups !== undefined || config.serverMetadata().userinfo_endpoint === undefined
      ? claims
      : { ...await oidc.fetchUserInfo(config, tokens.access_token, claims.sub), ...claims };
  const groups = "groups" in told && Array.isArray(told.groups) ? told.groups : [];
  const names = [told.preferred_username, told.email, claims.sub];
  const name = names.find((each) => typeof each === "string" && each !== "");
  return {
    name: typeof name === "string" ? name : claims.sub,
    groups: groups.filter((each) => typeof each === "string").slice(0, MOST_GROUPS),
  };
}

async function named<T>(action: string, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    return await abortable(run(), signal);
  } catch (error) {
    if (error instanceof SignOnError) throw error;
    // Causes may hold what the provider sent, tokens among it: names and codes alone are told.
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const refused = error instanceof oidc.AuthorizationResponseError ||
      error instanceof oidc.ResponseBodyError || error instanceof oidc.ClientError;
    const away = !refused || code === "OAUTH_TIMEOUT";
    const what = error instanceof Error ? error.name : "unknown error";
    throw new SignOnError(
      away ? "unavailable" : "refused",
      `${action}: ${[what, code].filter((part) => part !== "").join(" ")}`,
    );
  }
}
