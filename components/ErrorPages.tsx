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
