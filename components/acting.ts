import type { Role } from "../controller/model/role.ts";

/** What a page's forms need beside the fields that a person fills in. */
export interface Acting {
  readonly role: Role;
  /** Makes a form that is sent twice one operation: its start, each form adds its own name. */
  readonly key: string;
  /** The target as it stood when the page was made: what has changed since is not acted on. */
  readonly tag: string | null;
  /** Who leads, when it is not this process: actions are its to take. */
  readonly elsewhere: string | null;
}
