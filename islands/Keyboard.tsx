import { useEffect, useRef, useState } from "preact/hooks";
import type { Lang } from "../components/lang.ts";

const OFF = "shortcuts-off";

/** Single-key shortcuts and their list. They can be turned off (WCAG 2.1.4). */
export function Keyboard({ lang }: { lang: Lang }) {
  const { keys } = lang.dict;
  const dialog = useRef<HTMLDialogElement>(null);
  const [off, setOff] = useState(() => localStorage.getItem(OFF) === "yes");

  useEffect(() => {
    const stop = new AbortController();
    addEventListener("keydown", (event) => {
      if (!off) onKey(event, () => dialog.current?.showModal());
    }, { signal: stop.signal });
    return () => stop.abort();
  }, [off]);

  const choose = (value: boolean) => {
    localStorage.setItem(OFF, value ? "yes" : "no");
    setOff(value);
  };
  return (
    <>
      <button type="button" class="quiet" onClick={() => dialog.current?.showModal()}>
        {keys.open} <kbd>?</kbd>
      </button>
      <dialog ref={dialog} aria-labelledby="keys">
        <h2 id="keys">{keys.title}</h2>
        <dl class="keys">
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>{keys.search}</dd>
          <dt>
            <kbd>j</kbd> <kbd>k</kbd>
          </dt>
          <dd>{keys.move}</dd>
          <dt>
            <kbd>↵</kbd>
          </dt>
          <dd>{keys.go}</dd>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>{keys.help}</dd>
        </dl>
        <label class="check">
          <input
            type="checkbox"
            checked={!off}
            onChange={(event) => choose(!event.currentTarget.checked)}
          />
          {keys.off}
        </label>
        <form method="dialog">
          <button type="submit" autofocus>{keys.close}</button>
        </form>
      </dialog>
    </>
  );
}

function onKey(event: KeyboardEvent, help: () => void): void {
  const typing = event.target instanceof Element &&
    event.target.closest("input, select, textarea, dialog, [contenteditable]") !== null;
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  switch (event.key) {
    case "/": {
      const field = document.querySelector<HTMLInputElement>("input[type=search]");
      if (field === null) return;
      field.focus();
      field.select();
      break;
    }
    case "j":
      move(1);
      break;
    case "k":
      move(-1);
      break;
    case "?":
      help();
      break;
    default:
      return;
  }
  event.preventDefault();
}

/** Focuses the next or previous row of the page; stops at both ends. */
function move(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("a.job-link, a.row-link")];
  const at = links.findIndex((link) => link === document.activeElement);
  const index = at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step;
  links[Math.min(links.length - 1, Math.max(0, index))]?.focus();
}
