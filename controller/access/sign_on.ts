/** What must be remembered between leaving for the provider and coming back. */
export interface SignOnTransaction {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636); its hash alone goes to the provider at first. */
  readonly verifier: string;
}

/** Who came back. */
export interface SignedOn {
  /** For the audit. */
  readonly name: string;
  readonly groups: readonly string[];
}

/** Signs people in at an OpenID Connect provider. Both methods reject with {@link SignOnError}. */
export interface SignOn {
  /** Where to send the browser, and what to remember of it. */
  start(
    signal: AbortSignal,
  ): Promise<{ readonly url: string; readonly transaction: SignOnTransaction }>;
  /** `query` is what the provider has sent the browser back with. */
  finish(
    query: URLSearchParams,
    transaction: SignOnTransaction,
    signal: AbortSignal,
  ): Promise<SignedOn>;
}

/** Sign-in did not come about. The message is for the log; it holds no code, token or secret. */
export class SignOnError extends Error {
  override readonly name = "SignOnError";
  /** `refused`: what came back proves nobody. `unavailable`: the provider does not answer. */
  readonly code: "refused" | "unavailable";

  /** Makes one. */
  constructor(code: SignOnError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
