import type { ComponentChildren } from "preact";
import { atLeast, type Role } from "../controller/model/role.ts";
import type { Acting } from "./acting.ts";
import { inert } from "./inert.ts";
import { fill, useLang } from "./lang.ts";
import { Panel } from "./Parts.tsx";
import { Proof } from "./Proof.tsx";

/** The panel with a page's actions, or why there are none. */
export function ActionPanel(
  { acting, children }: { acting: Acting; children: ComponentChildren },
) {
  const { acting: text } = useLang().dict;
  return (
    <Panel id="actions" title={text.title} kind="actions">
      {acting.elsewhere !== null
        ? <p class="empty">{fill(text.elsewhere, { leader: inert(acting.elsewhere, 200) })}</p>
        : acting.role === "viewer"
        ? <p class="empty">{text.viewer}</p>
        : <div class="steps">{children}</div>}
    </Panel>
  );
}

/** True when somebody may act on this page. */
export function mayAct({ role, elsewhere }: Acting): boolean {
  return role !== "viewer" && elsewhere === null;
}

/**
 * An action in two steps: the first opens what it does and asks why, the second does it. For what can
 * be undone; it works without script.
 */
export function Step(
  { name, path, title, about, acting, needs = "operator", fields = [], children }: {
    /** Differs from the other forms of the page. */
    name: string;
    /** Where the form is sent. */
    path: string;
    title: string;
    about: string;
    acting: Acting;
    /** The least role that may. */
    needs?: Role;
    /** Hidden ones. */
    fields?: readonly (readonly [name: string, value: string])[];
    /** Further fields. */
    children?: ComponentChildren;
  },
) {
  const { acting: text } = useLang().dict;
  if (!atLeast(acting.role, needs)) return <NeedsAdmin title={title} />;
  return (
    <details class="step" name="step">
      <summary class="button">{title}…</summary>
      <form method="post" action={path} class="step-form">
        <p>{about}</p>
        <Hidden acting={acting} name={name} fields={fields} />
        {children}
        <Note name={name} />
        <button type="submit" class="act">{fill(text.confirm, { action: title })}</button>
      </form>
    </details>
  );
}

/** In place of a form that somebody may not send. */
export function NeedsAdmin({ title }: { title: string }) {
  return <p class="empty">{fill(useLang().dict.acting.admin, { action: title })}</p>;
}

/** Key, precondition and what else a form carries unseen. */
export function Hidden(
  { acting, name, fields = [] }: {
    acting: Acting;
    name: string;
    fields?: readonly (readonly [name: string, value: string])[];
  },
) {
  return (
    <>
      <Proof />
      <input type="hidden" name="key" value={`${acting.key}-${name}`} />
      {acting.tag === null ? null : <input type="hidden" name="if_match" value={acting.tag} />}
      {fields.map(([field, value]) => (
        <input
          key={field}
          type="hidden"
          name={field}
          value={value}
        />
      ))}
    </>
  );
}

/** Why somebody does it. */
export function Note({ name }: { name: string }) {
  const { acting: text } = useLang().dict;
  return (
    <label class="field grow">
      <span>{text.note}</span>
      <input
        name="note"
        id={`note-${name}`}
        maxLength={500}
        autocomplete="off"
        placeholder={text.notePlaceholder}
      />
    </label>
  );
}
