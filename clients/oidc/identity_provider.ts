import type * as oidc from "openid-client";
import {
  type IdentityProvider,
  type SignedIn,
  SignInError,
  type SignInTransaction,
} from "../../controller/access/identity_provider.ts";
import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Secret } from "../../lib/secret.ts";
import { AnswerTooLong, boundedFetch } from "./bounded_fetch.ts";

/** Keys and addresses of the provider are read again after so long. */
const KNOWN_MS = 3_600_000;
const TIMEOUT_SECONDS = 5;
/** `groups` is what Gitea and others call the scope of the claim of that name. */
const SCOPE = "openid profile groups";
const MOST_GROUPS = 1_000;
const REACH = "OIDC_ISSUER must be its address, as it calls itself, and this machine must reach it";

/** The library itself: some megabytes that nobody needs before the first sign-in. */
type Library = typeof oidc;

/**
 * Makes {@link IdentityProvider} by the authorization code flow of OpenID Connect with PKCE (S256), `state` and
 * `nonce`. The ID token's signature, issuer, audience and times are checked by `openid-client`, which is
 * loaded by the first of them.
 */
export function createIdentityProvider(options: {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret | null;
  /** Sent as it is, and nothing else. */
  readonly redirectUri: string;
  readonly clock: Pick<Clock, "monotonic">;
}): IdentityProvider {
  const { clock, redirectUri } = options;
  let known: { readonly config: oidc.Configuration; readonly until: number } | undefined;

  const configuration = async (library: Library): Promise<oidc.Configuration> => {
    if (known !== undefined && clock.monotonic() < known.until) return known.config;
    const config = await discover(library, options);
    known = { config, until: clock.monotonic() + KNOWN_MS };
    return config;
  };
  const named = async <T>(
    { action, check }: { readonly action: string; readonly check: string },
    signal: AbortSignal,
    run: (library: Library) => Promise<T>,
  ): Promise<T> => {
    const library = await import("openid-client");
    try {
      return await abortable(run(library), signal);
    } catch (error) {
      if (error instanceof SignInError) throw error;
      throw signInError(library, error, { action: `${action} "${options.issuer}"`, check });
    }
  };
  const leaving = { action: "Begin a sign-in at", check: REACH };
  const comingBack = {
    action: "Take the answer of",
    check:
      "there the application needs the id of OIDC_CLIENT_ID, the secret of OIDC_CLIENT_SECRET and " +
      `the redirect URI "${redirectUri}"`,
  };

  return {
    async start(signal) {
      return await named(leaving, signal, async (library) => {
        const config = await configuration(library);
        const transaction: SignInTransaction = {
          state: library.randomState(),
          nonce: library.randomNonce(),
          verifier: library.randomPKCECodeVerifier(),
        };
        const url = library.buildAuthorizationUrl(config, {
          redirect_uri: redirectUri,
          scope: SCOPE,
          state: transaction.state,
          nonce: transaction.nonce,
          code_challenge: await library.calculatePKCECodeChallenge(transaction.verifier),
          code_challenge_method: "S256",
        });
        return { url: url.href, transaction };
      });
    },
    async finish(query, { state, nonce, verifier }, signal) {
      return await named(comingBack, signal, async (library) => {
        const config = await configuration(library);
        // Its path is the redirect URI that is sent again, exactly, with the code.
        const back = new URL(redirectUri);
        back.search = query.toString();
        const tokens = await library.authorizationCodeGrant(config, back, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        return await whoOf(library, config, tokens);
      });
    },
  };
}

async function discover(
  library: Library,
  { issuer, clientId, clientSecret }: {
    readonly issuer: string;
    readonly clientId: string;
    readonly clientSecret: Secret | null;
  },
): Promise<oidc.Configuration> {
  const url = new URL(issuer);
  const authentication = clientSecret === null ? library.None() : basic(clientId, clientSecret);
  // Without it the ID token's signature is not looked at, because TLS has brought it.
  const execute = [library.enableNonRepudiationChecks];
  // The configuration has let plain http through for loopback alone.
  if (url.protocol === "http:") execute.push(library.allowInsecureRequests);
  return await library.discovery(url, clientId, {}, authentication, {
    execute,
    timeout: TIMEOUT_SECONDS,
    [library.customFetch]: boundedFetch,
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
  library: Library,
  config: oidc.Configuration,
  tokens: Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>,
): Promise<SignedIn> {
  const claims = tokens.claims();
  if (claims === undefined) {
    throw new SignInError(
      "refused",
      `Take the answer of "${config.serverMetadata().issuer}": it has no ID token; allow the ` +
        `application the scopes "${SCOPE}" there`,
    );
  }
  const told =
    claims.groups !== undefined || config.serverMetadata().userinfo_endpoint === undefined
      ? claims
      : { ...await library.fetchUserInfo(config, tokens.access_token, claims.sub), ...claims };
  const groups = "groups" in told && Array.isArray(told.groups) ? told.groups : [];
  const names = [told.preferred_username, told.email, claims.sub];
  const name = names.find((each) => typeof each === "string" && each !== "");
  return {
    name: typeof name === "string" ? name : claims.sub,
    groups: groups.filter((each) => typeof each === "string").slice(0, MOST_GROUPS),
  };
}

/**
 * What went wrong, for the log. Messages and causes may hold what the provider sent, tokens among it:
 * names and codes alone are told.
 */
function signInError(
  library: Library,
  error: unknown,
  { action, check }: { readonly action: string; readonly check: string },
): SignInError {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  if (cause instanceof AnswerTooLong) {
    return new SignInError("unavailable", `${action}: its answer is ${cause.message}; ${REACH}`);
  }
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const refused = error instanceof library.AuthorizationResponseError ||
    error instanceof library.ResponseBodyError || error instanceof library.ClientError;
  const away = !refused || code === "OAUTH_TIMEOUT";
  const name = error instanceof Error ? error.name : "unknown error";
  const what = [name, code, wordOf(error)].filter((part) => part !== "").join(" ");
  return new SignInError(
    away ? "unavailable" : "refused",
    `${action}: ${what}; ${away ? REACH : check}`,
  );
}

/** The error code of OAuth (RFC 6749 4.1.2.1, 5.2) that came with it; "" for anything else. */
function wordOf(error: unknown): string {
  const word = error instanceof Error && "error" in error ? String(error.error) : "";
  return /^[a-z_]{1,40}$/.test(word) ? word : "";
}
