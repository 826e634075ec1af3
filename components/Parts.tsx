import type { ComponentChildren } from "preact";
import { inert } from "./inert.ts";
import { fill, useLang } from "./lang.ts";
import type { ListData } from "./list_query.ts";
import { Outside } from "./Small.tsx";

/** Heading of a page, with what belongs beside it. */
export function PageHead(
  { title, children }: { title: ComponentChildren; children?: ComponentChildren },
) {
  return (
    <header class="title">
      <h1>{title}</h1>
      {children}
    </header>
  );
}

/** A panel with a heading; `id` ties both together and is a target in the URL. */
export function Panel(
  { id, title, aside, children, kind = "" }: {
    id: string;
    title: ComponentChildren;
    aside?: ComponentChildren;
    children: ComponentChildren;
    kind?: string;
  },
) {
  return (
    <section class={`panel ${kind}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** What may be wider than the page: it scrolls by itself, by keyboard too. */
export function Scroller({ name, children }: { name: string; children: ComponentChildren }) {
  const { groups } = useLang().dict;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={fill(groups.scroll, { name })}>
      {children}
    </div>
  );
}

/** A table whose rows become cards where there is no room for columns. */
export function Table(
  { columns, children, kind = "" }: {
    /** Class and heading of each column. */
    columns: readonly (readonly [name: string, heading: string])[];
    children: ComponentChildren;
    kind?: string;
  },
) {
  return (
    <table class={`cards ${kind}`}>
      <thead>
        <tr>
          {columns.map(([name, heading]) => (
            <th key={name} scope="col" class={`c-${name}`}>{heading}</th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

/** A value or a dash. */
export function Maybe({ text, max }: { text: string | null; max?: number }) {
  if (text === null || text === "") return <span class="mute">–</span>;
  return max === undefined ? <Outside text={text} /> : <Outside text={text} max={max} />;
}

/** A name and its value in a list of facts. */
export function Fact(
  { name, wide = false, children }: { name: string; wide?: boolean; children: ComponentChildren },
) {
  return (
    <div class={wide ? "wide" : ""}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Links to further pages of a list, and to the same as a file. */
export function Pager(
  { name, first, next, files = [] }: {
    name: string;
    /** Null on the first page. */
    first: string | null;
    /** Null on the last page. */
    next: string | null;
    files?: readonly (readonly [name: string, href: string])[];
  },
) {
  const { pages } = useLang().dict;
  if (first === null && next === null && files.length === 0) return null;
  return (
    <nav class="more" aria-label={name}>
      {first === null ? null : <a href={first}>{pages.first}</a>}
      {next === null ? null : <a href={next} rel="next">{pages.next}</a>}
      {files.length === 0 ? null : <span class="push" />}
      {files.map(([label, href]) => <a key={label} href={href} download>{label}</a>)}
    </nav>
  );
}

/** One field of {@link FilterForm}: a choice when it has options, else a text. */
export interface FilterField {
  readonly name: string;
  readonly label: string;
  readonly value: string | null;
  readonly options?: readonly (readonly [value: string, label: string])[];
  readonly placeholder?: string;
}

/** Filters as a form that GETs the page: they live in the URL and need no script. */
export function FilterForm(
  { path, fields, data }: {
    path: string;
    fields: readonly FilterField[];
    data: Pick<ListData<unknown>, "badCursor" | "unavailable">;
  },
) {
  const { dict } = useLang();
  const { filters: text, pages } = dict;
  return (
    <search>
      <form class="filters" method="get" action={path} aria-label={text.title}>
        {fields.map((field) => (
          <label key={field.name} class={field.options === undefined ? "grow" : ""}>
            <span>{field.label}</span>
            {field.options === undefined
              ? (
                <input
                  type="search"
                  name={field.name}
                  autocomplete="off"
                  spellcheck={false}
                  maxLength={300}
                  placeholder={field.placeholder ?? ""}
                  defaultValue={inert(field.value ?? "", 300)}
                />
              )
              : (
                <select name={field.name}>
                  <option value="">{text.all}</option>
                  {field.options.map(([value, label]) => (
                    <option key={value} value={value} selected={field.value === value}>
                      {label}
                    </option>
                  ))}
                </select>
              )}
          </label>
        ))}
        <button type="submit">{text.apply}</button>
        {fields.some(({ value }) => value !== null)
          ? <a class="clear" href={path}>{text.clear}</a>
          : null}
      </form>
      {data.badCursor ? <p class="notice wait">{pages.badCursor}</p> : null}
      {data.unavailable ? <p class="notice wait">{pages.unavailable}</p> : null}
    </search>
  );
}
