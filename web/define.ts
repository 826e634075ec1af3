import type { z } from "@hono/zod-openapi";
import { type ComponentChild, type FunctionComponent, h } from "preact";
import type { IslandName } from "../components/islands.ts";
import type { Dated } from "../components/dated.ts";
import type { Lang } from "../components/lang.ts";
import type { ActionOutcome } from "../controller/actions/actions.ts";
import type { NameAction, RawParams } from "./actions/named_action.ts";
import type { RouteContext } from "./route_context.ts";

/** What a handler found, or why it did not. `detail` is English text: what is missing, and the way out. */
export type Answer<T> =
  | {
    readonly kind: "found";
    readonly data: T;
    readonly headers?: Readonly<Record<string, string>>;
  }
  | { readonly kind: "bad"; readonly detail: string }
  | { readonly kind: "absent"; readonly detail: string };

/**
 * A page: the handler returns data, the component draws it; JSON of the same data for machines. Both get
 * it with the time and the place in the event stream where the handler began.
 */
export interface PageSpec<D extends object> {
  readonly path: string;
  handler(context: RouteContext): Promise<Answer<D>>;
  title(data: D & Dated, lang: Lang): string;
  readonly component: FunctionComponent<{ data: D & Dated }>;
  /** Draws the same component again in the browser and keeps it fresh; null for a page that rests. */
  readonly island: IslandName | null;
  /** What `Accept: application/json` gets. */
  json(data: D & Dated): unknown;
}

/** A page with its data type closed in. */
export interface PageRoute {
  readonly kind: "page";
  readonly path: string;
  load(context: RouteContext): Promise<
    Answer<{
      readonly json: unknown;
      /** What the island gets. */
      readonly data: unknown;
      readonly island: IslandName | null;
      title(lang: Lang): string;
      body(): ComponentChild;
    }>
  >;
}

/** A GET of the JSON API. */
export interface ApiSpec<P extends z.ZodObject, Q extends z.ZodObject, R extends z.ZodType> {
  /** With `:name` parameters. */
  readonly path: string;
  readonly summary: string;
  readonly params: P;
  readonly query: Q;
  readonly response: R;
  /** What a 404 of it means, for the OpenAPI document; without it there is none. */
  readonly absent?: string;
  /** Answers 304 to a matching `If-None-Match`; the tag is made of what this returns. */
  etagOf?(data: z.output<R>): unknown;
  handler(
    context: RouteContext,
    input: { readonly params: z.output<P>; readonly query: z.output<Q> },
  ): Promise<Answer<z.output<R>>>;
}

/** An API route with its types closed in. */
export interface ApiRoute {
  readonly kind: "api";
  readonly path: string;
  readonly summary: string;
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly response: z.ZodType;
  readonly absent: string | null;
  /** Answers with problems for input that does not fit the schemas. */
  load(
    context: RouteContext,
    raw: {
      readonly params: RawParams;
      readonly query: Readonly<Record<string, string>>;
    },
  ): Promise<Answer<{ readonly body: unknown; readonly tagged: unknown }>>;
}

/** A route that makes its own response (stream, document). */
export interface RawRoute {
  readonly kind: "raw";
  readonly path: string;
  respond(context: RouteContext): Response | Promise<Response>;
}

/** A probe: needs nothing of the program but this, so that `HEALTH_LISTEN` can answer it too. */
export interface ProbeRoute {
  readonly kind: "probe";
  readonly path: string;
  respond(
    context: Pick<RouteContext, "readiness" | "metricsText">,
  ): Response | Promise<Response>;
}

/** A POST with an effect. */
export interface ActionSpec<P extends z.ZodObject, B extends z.ZodType> {
  readonly path: string;
  readonly summary: string;
  readonly params: P;
  readonly body: B;
  /**
   * What it asks for: the audit is told of it by that name, and its kind says which role may. Null for
   * what changes nothing: every operator may, and the audit is not told.
   */
  readonly named: NameAction | null;
  /** Where a form leads to afterwards; null for the JSON API. */
  readonly page: ((params: z.output<P>) => string) | null;
  act(
    context: RouteContext,
    input: { readonly params: z.output<P>; readonly body: z.output<B> },
  ): Promise<ActionOutcome | BadInput | Seen>;
}

/** Done, and the page itself shows it: nothing is kept of it. Only for forms. */
export interface Seen {
  readonly kind: "seen";
}

/** The parts of an input do not fit together. */
export interface BadInput {
  readonly kind: "bad";
  readonly detail: string;
}

/** An action with its types closed in. */
export interface ActionRoute {
  readonly kind: "action";
  readonly path: string;
  readonly summary: string;
  readonly params: z.ZodObject;
  readonly body: z.ZodType;
  readonly named: NameAction | null;
  /** It takes a form and answers with a redirect to `page`. */
  readonly form: boolean;
  page(params: RawParams): string;
  act(
    context: RouteContext,
    raw: { readonly params: RawParams; readonly body: unknown },
  ): Promise<ActionOutcome | BadInput | Seen>;
}

/** One entry of routes/mod.ts. */
export type Route = PageRoute | ApiRoute | RawRoute | ProbeRoute | ActionRoute;

/** Ties a page's handler, component and JSON to one data type. */
export function definePage<D extends object>(spec: PageSpec<D>): PageRoute {
  return {
    kind: "page",
    path: spec.path,
    async load(context) {
      const dated: Dated = {
        at: new Date(context.now).toISOString(),
        // Before anything is read: what changes meanwhile comes once more by the stream.
        lastEventId: context.lastEventId(),
      };
      const answer = await spec.handler(context);
      if (answer.kind !== "found") return answer;
      const data = { ...dated, ...answer.data };
      return {
        ...answer,
        data: {
          json: spec.json(data),
          data,
          island: spec.island,
          title: (lang) => spec.title(data, lang),
          body: () => h(spec.component, { data }),
        },
      };
    },
  };
}

/** Ties an API route's handler to its schemas. */
export function defineApi<P extends z.ZodObject, Q extends z.ZodObject, R extends z.ZodType>(
  spec: ApiSpec<P, Q, R>,
): ApiRoute {
  return {
    kind: "api",
    path: spec.path,
    summary: spec.summary,
    params: spec.params,
    query: spec.query,
    response: spec.response,
    absent: spec.absent ?? null,
    async load(context, raw) {
      const params = spec.params.safeParse(raw.params);
      if (!params.success) return { kind: "absent", detail: faultsOf(params.error) };
      const query = spec.query.safeParse(raw.query);
      if (!query.success) return { kind: "bad", detail: faultsOf(query.error) };
      const answer = await spec.handler(context, { params: params.data, query: query.data });
      if (answer.kind !== "found") return answer;
      const tagged = spec.etagOf?.(answer.data) ?? null;
      return { ...answer, data: { body: answer.data, tagged } };
    },
  };
}

/** Ties an action's handler to its schemas. */
export function defineAction<P extends z.ZodObject, B extends z.ZodType>(
  spec: ActionSpec<P, B>,
): ActionRoute {
  const { path, summary, params, body, named, page } = spec;
  return {
    kind: "action",
    path,
    summary,
    params,
    body,
    named,
    form: page !== null,
    page: (raw) => page?.(params.parse(raw)) ?? "/",
    async act(context, raw) {
      const where = params.safeParse(raw.params);
      if (!where.success) return { kind: "absent", detail: faultsOf(where.error) };
      const what = body.safeParse(raw.body);
      if (!what.success) return { kind: "bad", detail: faultsOf(what.error) };
      return await spec.act(context, { params: where.data, body: what.data });
    },
  };
}

/** Ties a raw route to its path. */
export function defineRaw(spec: Omit<RawRoute, "kind">): RawRoute {
  return { kind: "raw", ...spec };
}

/** Ties a probe to its path. */
export function defineProbe(spec: Omit<ProbeRoute, "kind">): ProbeRoute {
  return { kind: "probe", ...spec };
}

function faultsOf(error: z.ZodError): string {
  return error.issues.slice(0, 5)
    .map(({ path, message }) => `Correct "${path.join(".")}": ${message}`).join("; ");
}
