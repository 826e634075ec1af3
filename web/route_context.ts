import type { Visitor } from "../components/visitor.ts";
import type { Actions } from "../controller/actions/actions.ts";
import type { Actor } from "../controller/model/role.ts";
import type { Views } from "../controller/views/views.ts";

/** What a handler may use. */
export interface RouteContext {
  readonly views: Views;
  readonly actions: Actions;
  /** Who asks. */
  readonly actor: Actor;
  /** The same, for the page. */
  readonly visitor: Visitor;
  /** What an action must carry, because a cookie lets it in; null otherwise. */
  readonly proof: string | null;
  /** Address of the connection. */
  readonly peer: string;
  /** Aborts when the server ends: an action goes on although its caller has gone. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly requestId: string;
  /** Id of the newest event of the stream; read it before the data that the page shows. */
  lastEventId(): string;
  /** Opens the event stream; undefined when no more viewers are taken. */
  openStream(lastEventId: string | null): ReadableStream<Uint8Array> | undefined;
  /** Path parameter, decoded; "" if the path has none of that name. */
  param(name: string): string;
  readonly readiness: () => Readiness;
  readonly metricsText: () => Promise<string>;
  /** The OpenAPI document. */
  readonly document: () => unknown;
}

/** Whether this replica can do its work, and what is missing. */
export interface Readiness {
  readonly ready: boolean;
  /** A standby is ready when it could lead; `starting` = it is not known yet who leads. */
  readonly role: "leader" | "standby" | "starting";
  readonly checks: readonly {
    readonly name: string;
    readonly ok: boolean;
    /** Why not; null when it is well. */
    readonly detail: string | null;
  }[];
}
