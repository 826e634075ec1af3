import { inert } from "./inert.ts";
import { fill, useLang } from "./lang.ts";

/** Why the page is shown again. */
export type SignInFault =
  | "token"
  | "provider"
  | "role"
  | "slow"
  /** Signed out, which the other replicas have not been told yet. */
  | "here";

/** The page before all others: a way in for people, and one for tokens. */
export function SignInPage(
  { to, provider, tokens, fault, values = {} }: {
    /** A path of our own. */
    to: string;
    /** Host of the provider; null when there is none. */
    provider: string | null;
    tokens: boolean;
    fault: SignInFault | null;
    /** What the words of the fault name. */
    values?: Readonly<Record<string, string | number>>;
  },
) {
  const { signIn: text } = useLang().dict;
  const query = to === "/" ? "" : `?to=${encodeURIComponent(to)}`;
  return (
    <div class="panel message sign-in">
      <h1>{text.title}</h1>
      {fault === null ? null : (
        <p class="notice wait flag" role="alert">
          {inert(fill(text.faults[fault], { host: provider ?? "", ...values }))}
        </p>
      )}
      {provider === null ? null : (
        <p>
          <a class="button" href={`/sign-in/oidc${query}`}>
            {text.provider.replace("{host}", provider)}
          </a>
        </p>
      )}
      {tokens
        ? (
          <form method="post" action="/sign-in" class="sign-in-form">
            <input type="hidden" name="to" value={to} />
            <label class="field grow">
              <span>{text.token}</span>
              <input name="token" type="password" required autocomplete="off" maxLength={1000} />
            </label>
            <button type="submit">{text.submit}</button>
          </form>
        )
        : null}
    </div>
  );
}
