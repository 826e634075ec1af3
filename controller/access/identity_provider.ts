/** What must be remembered between leaving for the provider and coming back. */
export interface SignInTransaction {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636); its hash alone goes to the provider at first. */
  readonly verifier: string;
}

/** Who came back. */
export interface SignedIn {
  /** For the audit. */
  readonly name: string;
  readonly groups: readonly string[];
}

/** Signs people in at an OpenID Connect provider. Both methods reject with {@link SignInError}. */
export interface IdentityProvider {
  /** Where to send the browser, and what to remember of it. */
  start(
    signal: AbortSignal,
  ): Promise<{ readonly url: string; readonly transaction: SignInTransaction }>;
  /** `query` is what the provider has sent the browser back with. */
  finish(
    query: URLSearchParams,
    transaction: SignInTransaction,
    signal: AbortSignal,
  ): Promise<SignedIn>;
}

/** Sign-in did not come about. The message is for the log; it holds no code, token or secret. */
export class SignInError extends Error {
  override readonly name = "SignInError";
  /** `refused`: what came back proves nobody. `unavailable`: the provider does not answer. */
  readonly code: "refused" | "unavailable";

  /** Makes one. */
  constructor(code: SignInError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
