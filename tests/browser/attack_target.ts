import type { Browser } from "playwright-core";
import type { AuditView } from "../../controller/views/views.ts";
import { ROUTES } from "../../routes/mod.ts";
import type { Place } from "./grounds.ts";

/** What the attacks are made with, and what they must not reach. */
export interface Target {
  readonly browser: Browser;
  readonly folder: string;
  readonly url: string;
  readonly port: number;
  readonly place: Place;
  as(role: Role): Readonly<Record<string, string>>;
  /** Says that nothing was done by anybody, and nothing is set. */
  untouched(what: string): Promise<void>;
  audit(query: string): Promise<readonly AuditView[]>;
}

/** Whom the controller knows. */
export type Role = "viewer" | "operator" | "admin";

/** All of them, each with a token. */
export const ROLES = ["viewer", "operator", "admin"] as const;
/** The token of a role. */
export function tokenOf(role: Role): string {
  return `${role}-of-this-test`;
}

/** Header of a form. */
export const FORM = { "content-type": "application/x-www-form-urlencoded" };
/** Header of the JSON API. */
export const JSON_BODY = { "content-type": "application/json" };
/** An action that an operator may take. */
export const CORDON = "/api/v1/backends/pod/cordon";
/** Sets the title of a page on which it runs. */
export const SCRIPT =
  "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

/** Paths of every action, with names that fit. */
export const ACTIONS = Object.values(ROUTES).flatMap((route) =>
  route.kind !== "action" ? [] : [{
    form: route.form,
    path: route.path.replace(":kind", route.path.includes("backends") ? "cordon" : "cancel")
      .replace(":id", route.path.includes("operations") ? "op-1" : "gitea-task-1")
      .replace(":name", route.path.includes("executors") ? "ci-0123456789-1" : "pod"),
  }]
);
