import type { Views } from "../../controller/views/views.ts";
import { changedViews } from "./changed_views.ts";
import { HOSTILE } from "./sample_jobs.ts";

/** What an attacker may choose or make others write: fields of views that are free text. */
const FREE = new Set([
  "actor",
  "by",
  "detail",
  "error",
  "event",
  "executor",
  "holder",
  "job",
  "label",
  "lastError",
  "message",
  "node",
  "note",
  "reason",
  "ref",
  "repository",
  "requestId",
  "role",
  "spiffeId",
  "target",
  "text",
  "title",
  "version",
  "why",
  "workflow",
]);
const POISON = `${HOSTILE.html}${HOSTILE.script}`;

/** The same views with a script in every text that comes from outside, in what they tell later, too. */
export function poisoned(views: Views): Views {
  return {
    ...changedViews(views, poison),
    subscribe: (listener, signal) => views.subscribe((change) => listener(poison(change)), signal),
  };
}

/** A view with a script in every text of it that comes from outside. */
export function poison<T>(value: T): T {
  const text = JSON.stringify(value, (key, inner: unknown) => {
    if (key === "giteaUrl") return HOSTILE.link;
    if (!FREE.has(key)) return inner;
    if (typeof inner === "string") return `${POISON}${inner}`;
    if (!Array.isArray(inner)) return inner;
    return inner.map((each: unknown) => typeof each === "string" ? `${POISON}${each}` : each);
  });
  return text === undefined ? value : JSON.parse(text);
}
