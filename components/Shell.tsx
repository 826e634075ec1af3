import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { clockTime, coarse, fill, useLang } from "./lang.ts";
import { LiveContext } from "./live.ts";
import { useNow } from "./now.ts";
import { inert } from "./inert.ts";
import { Proof } from "./Proof.tsx";
import { VisitorContext } from "./visitor.ts";

/** What every page has around its content. `at`: when the data was read, RFC 3339 UTC. */
export function Shell(
  { at, version, backends, path, children }: {
    at: string;
    version: string;
    /** Names of the backends that run here, for the navigation. */
    backends: readonly string[];
    /** Path and query of this page, for the language links. */
    path: string;
    children: ComponentChildren;
  },
) {
  const { dict } = useLang();
  const { kind } = useContext(VisitorContext);
  const stranger = kind === "anonymous";
  return (
    <>
      <a class="skip" href="#content">{dict.skip}</a>
      <header class="masthead">
        <a class="brand" href="/">
          <Logo />
          <span>{dict.product}</span>
        </a>
        {stranger ? null : <Navigation path={path} backends={backends} />}
        <span class="push" />
        {stranger ? null : <LiveMark at={at} />}
        <Who />
        <Languages path={path} />
      </header>
      <Banner at={at} />
      <main id="content" tabIndex={-1}>{children}</main>
      <footer>
        <span>{fill(dict.footer.version, { v: version })}</span>
        {kind === "local" ? <span>{dict.footer.loopback}</span> : null}
        {stranger ? null : (
          <>
            <a href="/api/v1/docs">{dict.footer.api}</a>
            <a href="/api/v1/status">{dict.footer.status}</a>
          </>
        )}
        <span class="push" id="keyboard" />
      </footer>
    </>
  );
}

function Navigation({ path, backends }: { path: string; backends: readonly string[] }) {
  const { nav, pages } = useLang().dict;
  const [here = "/"] = path.split("?", 1);
  const links = [
    ["/", nav.now],
    ["/executors", pages.executors],
    ...backends.map((name) => [`/backends/${name}`, name]),
    ["/canary", pages.canary],
    ["/leader", pages.leader],
    ["/history", pages.history],
    ["/audit", pages.audit],
    ["/health", pages.health],
  ] as const;
  return (
    <nav aria-label={nav.label}>
      {links.map(([href, name]) => (
        <a key={href} href={href} aria-current={here === href ? "page" : undefined}>{name}</a>
      ))}
    </nav>
  );
}

/** Who has signed in, and the way out. */
function Who() {
  const { signIn: text } = useLang().dict;
  const visitor = useContext(VisitorContext);
  if (visitor.kind !== "session") return null;
  return (
    <form method="post" action="/sign-out" class="who">
      <span>{inert(visitor.name, 60)} · {visitor.role}</span>
      <Proof />
      <button type="submit">{text.out}</button>
    </form>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 20 20" class="logo" aria-hidden="true">
      <rect x="1" y="1" width="8" height="8" rx="1.5" class="a" />
      <rect x="11" y="1" width="8" height="8" rx="1.5" class="b" />
      <rect x="1" y="11" width="8" height="8" rx="1.5" class="b" />
      <rect x="11.75" y="11.75" width="6.5" height="6.5" rx="1" class="c" />
    </svg>
  );
}

function Languages({ path }: { path: string }) {
  const { dict, locale } = useLang();
  const [other, tag, name] = locale === "en"
    ? ["zh-CN", "zh-CN", dict.language.zh] as const
    : ["en", "en", dict.language.en] as const;
  // Not by URL: a path that begins with "//" names a host there, or is none at all.
  const end = path.includes("?") ? path.indexOf("?") : path.length;
  const query = new URLSearchParams(path.slice(end));
  query.set("lang", other);
  const href = `${path.slice(0, end).replace(/^\/+/, "/")}?${query}`;
  return <a class="language" href={href} hreflang={tag} lang={tag}>{name}</a>;
}

function LiveMark({ at }: { at: string }) {
  const { dict } = useLang();
  const live = useContext(LiveContext);
  const now = useNow();
  if (live.kind === "static") {
    return <span class="live is-static num">{fill(dict.asOf, { t: clockTime(at, now) })}</span>;
  }
  return (
    <span class={`live is-${live.kind}`}>
      <span class="lamp" aria-hidden="true" />
      {dict.live[live.kind]}
    </span>
  );
}

/** After 15 s without a stream: says since when, and what still works. Nothing is taken away. */
const BANNER_AFTER_MS = 15_000;

function Banner({ at }: { at: string }) {
  const lang = useLang();
  const live = useContext(LiveContext);
  const now = useNow();
  const silentMs = live.kind === "lost" ? now - live.since : 0;
  return (
    <div role="status">
      {live.kind === "lost" && silentMs >= BANNER_AFTER_MS
        ? (
          <p class="banner">
            <strong>{lang.dict.live.lost}.</strong>{" "}
            {fill(lang.dict.live.banner, { t: coarse(lang, silentMs), at: clockTime(at, now) })}
            {" "}
            {lang.dict.live.retry} <a href="">{lang.dict.live.reload}</a>
          </p>
        )
        : null}
    </div>
  );
}
