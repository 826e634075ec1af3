import { inert } from "./inert.ts";
import { fill, useLang } from "./lang.ts";

/** Nothing is here. */
export function AbsentPage() {
  const { absent } = useLang().dict;
  return (
    <div class="panel message">
      <h1>{absent.title}</h1>
      <p>{absent.text}</p>
      <p>
        <a href="/">{absent.home}</a>
      </p>
    </div>
  );
}

/** An action that was not taken: why, how things stand now, and the way back. */
export function RefusedPage(
  { detail, current, back }: { detail: string; current: unknown; back: string },
) {
  const { refused } = useLang().dict;
  const members = typeof current === "object" && current !== null ? Object.entries(current) : [];
  return (
    <div class="panel message">
      <h1>{refused.title}</h1>
      <p>{inert(detail, 600)}</p>
      {members.length === 0 ? null : (
        <>
          <p>{refused.current}</p>
          <dl class="current">
            {members.map(([name, value]) => (
              <div key={name}>
                <dt class="mono">{inert(name, 60)}</dt>
                <dd class="mono">
                  {inert(typeof value === "string" ? value : JSON.stringify(value) ?? "", 300)}
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
      <p>
        <a class="button" href={back}>{refused.back}</a>
      </p>
    </div>
  );
}

/** The page could not be made; the request id finds the fault in the log. */
export function FailedPage({ requestId }: { requestId: string }) {
  const { failed } = useLang().dict;
  return (
    <div class="panel message">
      <h1>{failed.title}</h1>
      <p>{fill(failed.text, { id: requestId })}</p>
    </div>
  );
}
