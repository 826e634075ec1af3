import { type Board, GROUPS, hrefOf } from "./board.ts";
import { inert } from "./inert.ts";
import { fill, useLang } from "./lang.ts";

/** Filters as a form that GETs the page: they live in the URL and need no script. */
export function FilterBar({ board }: { board: Board }) {
  const { dict } = useLang();
  const { filters, status } = board;
  const text = dict.filters;
  const repositories = new Set(
    [...board.waiting.items, ...board.running.items, ...board.ended.items]
      .map(({ repository }) => inert(repository, 200)),
  );
  const active = Object.values(filters).some((value) => value !== null);
  return (
    <search>
      <form class="filters" method="get" action="/" aria-label={text.title}>
        <label>
          <span>{text.backend}</span>
          <select name="backend">
            <option value="">{text.all}</option>
            {status.backends.map(({ name }) => (
              <option key={name} value={name} selected={filters.backend === name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <span>{text.state}</span>
          <select name="state">
            <option value="">{text.all}</option>
            {(["waiting", "running", "ended"] as const).map((group) => (
              <optgroup key={group} label={dict.groups[group]}>
                {GROUPS[group].map((state) => (
                  <option key={state} value={state} selected={filters.state === state}>
                    {dict.states[state]}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        </label>
        <label class="grow">
          <span>{text.repository}</span>
          <input
            type="search"
            name="repository"
            list="repositories"
            autocomplete="off"
            spellcheck={false}
            maxLength={300}
            placeholder={text.placeholder}
            defaultValue={filters.repository ?? ""}
          />
        </label>
        <datalist id="repositories">
          {[...repositories].sort().map((name) => <option key={name} value={name} />)}
        </datalist>
        {filters.list === null ? null : <input type="hidden" name="list" value={filters.list} />}
        <button type="submit">{text.apply}</button>
        {active ? <a class="clear" href={hrefOf({})}>{text.clear}</a> : null}
      </form>
      {board.notices.map((notice, index) => (
        <p key={index} class="notice wait">
          {notice.kind === "bad_cursor" ? text.badCursor : fill(text.ignored, {
            name: text[notice.name],
            value: inert(notice.value, 60),
          })}
        </p>
      ))}
    </search>
  );
}
