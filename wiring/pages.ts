import { createIdentityProvider } from "../clients/oidc/identity_provider.ts";
import { createMetrics } from "../clients/prometheus/metrics.ts";
import { createSignOuts, type SignOuts } from "../controller/access/sign_outs.ts";
import type { Config, Listen } from "../controller/config/config.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { createAccess } from "../web/access/access.ts";
import type { Readiness } from "../web/route_context.ts";
import { LOOPBACK_HOSTS } from "../web/guard.ts";
import { listenHealth, listenWeb } from "../web/listen.ts";
import { createProbes } from "../web/probes.ts";
import { createWeb } from "../web/server.ts";
import { createStandby } from "../web/standby.ts";
import { createWebhook } from "../web/webhook.ts";
import { emptyBoard } from "./boards.ts";
import { createLateActions, type LateActions } from "./late_actions.ts";
import { createLateNudge, type LateNudge } from "./late_nudge.ts";
import { createLateViews, type LateViews } from "./late_views.ts";
import type { Sources } from "./sources.ts";

/** Dashboard, API, probes and metrics; up before the servers they tell of. */
export interface Pages extends AsyncDisposable {
  readonly views: LateViews;
  readonly actions: LateActions;
  readonly recorder: Recorder;
  /** Where hints of Gitea's webhook go. */
  readonly hints: LateNudge;
  /** What is to be shared with the other replicas; null where nobody signs in. */
  readonly signOuts: SignOuts | null;
  /** Where the dashboard is. */
  readonly url: string;
}

/** Opens the pages. Throws when their address cannot be listened on. */
export function openPages(deps: {
  readonly config: Config;
  readonly version: string;
  readonly sources: Sources;
  readonly clock: Clock;
  readonly logger: Logger;
}): Pages {
  const { config, version, clock, logger, sources } = deps;
  const views = createLateViews(emptyBoard(deps));
  const actions = createLateActions(views.leader, {
    upstream: sources.upstream,
    clock,
    logger,
  });
  const hints = createLateNudge(() => views.leader().leading);
  const { webhookSecret: secret } = config.gitea;
  const { access: rules } = config.admin;
  const stack = new AsyncDisposableStack();
  const metrics = stack.use(createMetrics({ views, clock, logger }));
  const readiness = () => readinessOf(views, sources);
  const signOuts = createSignOuts({ clock, logger });
  const access = createAccess({
    rules,
    signOuts,
    identities: rules.oidc === null ? null : createIdentityProvider({ ...rules.oidc, clock }),
    secrets: config.capabilityKeys,
    publicUrl: config.admin.publicUrl,
    clock,
  });
  const web = stack.use(createWeb({
    views,
    actions,
    access,
    metricsText: metrics.text,
    readiness,
    logger,
    clock,
    version,
    hosts: allowedHosts(config),
    ...secret === null ? {} : {
      webhook: createWebhook({
        secret,
        nudge: hints.nudge,
        recorder: metrics.recorder,
        clock,
        logger,
      }),
    },
    standby: createStandby({ leader: sources.upstream, self: sources.self, clock, logger }),
  }));
  const { listen, health: healthListen } = config.admin;
  const listener = stack.use(
    named("ADMIN_LISTEN", listen, () => listenWeb(web, listen, { signIn: access.required })),
  );
  if (healthListen !== null) {
    const health = createProbes({ metricsText: metrics.text, readiness, logger });
    stack.use(named("HEALTH_LISTEN", healthListen, () => listenHealth(health, healthListen)));
  }
  const { hostname, port } = listener.address;
  return {
    views,
    actions,
    recorder: metrics.recorder,
    hints,
    signOuts: access.required ? signOuts : null,
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}/`,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** What `open` gives; a failure names the setting and the way out. */
function named<T>(variable: string, { hostname, port }: Listen, open: () => T): T {
  try {
    return open();
  } catch (error) {
    const why = error instanceof Deno.errors.AddrInUse
      ? "another program listens there; stop that one, or"
      : error instanceof Deno.errors.PermissionDenied
      ? "this user may not;"
      : `${error instanceof Error ? error.message : error};`;
    throw new Error(`Listen on "${hostname}:${port}": ${why} set ${variable} to another address`);
  }
}

/** Names under which the dashboard may be asked for: a foreign `Host` is DNS rebinding. */
function allowedHosts(config: Config): string[] {
  const { listen, publicUrl, advertise } = config.admin;
  const hosts: string[] = [...LOOPBACK_HOSTS];
  if (listen.hostname !== "") hosts.push(listen.hostname);
  if (publicUrl !== null) hosts.push(new URL(publicUrl).host);
  // Standbys pass reads on to it.
  if (advertise !== null) hosts.push(hostOf(advertise));
  return hosts;
}

/** Host and port of `host:port` or of a URL. */
function hostOf(address: string): string {
  return URL.canParse(address) && address.includes("://") ? new URL(address).host : address;
}

/** What the start waits for: with the server that holds it up, where one does. */
export function recoveryDetail(sources: Pick<Sources, "all">): string {
  const all = sources.all();
  const away = (["kubernetes", "opensandbox"] as const).flatMap((name) => {
    const { state, lastError } = all[name];
    return state === "down" ? [`${name} is down (${lastError ?? "no reason is known"})`] : [];
  });
  return ["executors and stored tasks are being read", ...away].join("; ");
}

/** A standby has nothing to recover: it is ready when it could lead. */
function readinessOf(views: LateViews, sources: Sources): Readiness {
  const all = sources.all();
  const servers = (["gitea", "nats", "spire"] as const).map((name) => {
    const { state, lastError } = all[name];
    const ok = state === "up" || state === "degraded" || state === "unused";
    return { name, ok, detail: ok ? null : lastError ?? `${name} is ${state}` };
  });
  const { holder, self, leading } = views.leader();
  const role = leading ? "leader" : holder !== null && holder !== self ? "standby" : "starting";
  const recovered = views.status().ready;
  const checks = [...servers, {
    name: "leader",
    ok: role !== "starting",
    detail: role === "starting" ? "it is not known yet who leads" : null,
  }, {
    name: "recovery",
    ok: role === "standby" || recovered,
    detail: role === "standby" || recovered ? null : recoveryDetail(sources),
  }];
  return { ready: checks.every((check) => check.ok), role, checks };
}
