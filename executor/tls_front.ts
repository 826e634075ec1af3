import type { GiteaRoute } from "./gitea_route.ts";
import { endToEnd } from "./origin.ts";
import { MAX_CALL_BYTES, type RunnerService } from "./runner_service.ts";
import { readAtMost } from "../lib/bytes.ts";
import type { Logger } from "../lib/logger.ts";

/** Plays Gitea towards the runner for TLS; the CONNECTs to Gitea end here. */
export interface TlsFront extends AsyncDisposable {
  /** On loopback. */
  readonly port: number;
}

/** What the front works with. */
export interface TlsFrontDeps {
  readonly service: RunnerService;
  readonly route: GiteaRoute;
  readonly certificate: { readonly certificatePem: string; readonly privateKeyPem: string };
  readonly logger: Logger;
  /** Ends requests under way; disposing does, too. */
  readonly signal: AbortSignal;
}

/**
 * Listens with the gate's certificate and splits requests as the proxy does. `Deno.serve` with
 * `fetch`, because a `node:https` server that pipes an upstream's answer stalls after a few requests
 * per connection in Deno 2.9. Gitea's own certificate is verified by `fetch`.
 */
export function openTlsFront(deps: TlsFrontDeps): TlsFront {
  const closing = new AbortController();
  const signal = AbortSignal.any([deps.signal, closing.signal]);
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    cert: deps.certificate.certificatePem,
    key: deps.certificate.privateKeyPem,
    onListen: () => {},
    onError: (error) => {
      if (!signal.aborted) deps.logger.warn("proxy request failed", { error });
      return new Response("no answer\n", { status: 502 });
    },
  }, (request) => handle({ ...deps, signal }, request));
  return {
    port: server.addr.port,
    async [Symbol.asyncDispose]() {
      // The server waits for every request, also for one whose client has gone.
      closing.abort(new DOMException("The gate's proxy is closed", "AbortError"));
      await server.shutdown();
    },
  };
}

async function handle(deps: TlsFrontDeps, request: Request): Promise<Response> {
  const to = deps.route.route(request.method, request.url);
  if (!deps.route.isGitea(new URL(request.url).host)) {
    return new Response("this is not that host\n", { status: 421 });
  }
  if (to.kind === "origin") return await pass(request, deps.signal);
  const call = {
    method: to.method,
    header: (name: string) => request.headers.get(name) ?? undefined,
  };
  const refusal = deps.service.refuse(call);
  if (refusal !== undefined) return new Response(new Uint8Array(refusal.body), refusal);
  const body = await readAtMost(request.body ?? [], MAX_CALL_BYTES);
  if (body === undefined) return new Response("the call is too large\n", { status: 413 });
  const answer = await deps.service.answer({ ...call, body }, deps.signal);
  return new Response(new Uint8Array(answer.body), answer);
}

async function pass(request: Request, signal: AbortSignal): Promise<Response> {
  const headers = copied(request.headers);
  // `fetch` unpacks what it asked for; what it did not ask for passes through as it is.
  headers.set("accept-encoding", "identity");
  const answer = await fetch(request.url, {
    method: request.method,
    headers,
    body: request.body,
    redirect: "manual",
    signal,
  });
  return new Response(answer.body, { status: answer.status, headers: copied(answer.headers) });
}

function copied(from: Headers): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(endToEnd([...from].flat()))) {
    for (const value of [values].flat()) headers.append(name, value);
  }
  return headers;
}
