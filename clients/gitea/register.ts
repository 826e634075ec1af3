import { type Clock, systemClock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { PingService } from "../../proto/gen/ping/v1/ping_pb.ts";
import { RunnerService } from "../../proto/gen/runner/v1/services_pb.ts";
import { connectClient } from "../connect/client.ts";
import { callWithin } from "./call.ts";
import { giteaError } from "./error.ts";
import { inspectFetch } from "./inspect_fetch.ts";

/** A new runner at Gitea. */
export interface Registration {
  readonly uuid: string;
  /** Told this once only. */
  readonly token: Secret;
  /** Gitea's number of the runner. */
  readonly id: bigint;
  readonly name: string;
}

/** What to register. */
export interface RegisterOptions {
  /** Base URL (Gitea's ROOT_URL). */
  readonly url: string;
  /** From Gitea's page of runners; may be used again. */
  readonly registrationToken: Secret;
  readonly name: string;
  /** Bare names; the scheduler declares its own at each start. */
  readonly labels: readonly string[];
  /** Shown at Gitea as the runner's version. */
  readonly version?: string;
  readonly clock?: Clock;
  readonly fetch?: typeof globalThis.fetch;
}

const DEADLINE_MS = 10_000;

/**
 * Makes a permanent registration: Ping, then Register, as the official runner does. Rejects with
 * `GiteaError`: `bad_registration_token`, `not_gitea`, `unavailable` and so on. Not idempotent: each
 * success is one more runner at Gitea.
 */
export async function register(
  options: RegisterOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<Registration> {
  const url = options.url.replace(/\/+$/, "");
  const attempt = { action: "register a runner at", url };
  const transport = {
    baseUrl: `${url}/api/actions`,
    fetch: inspectFetch(options.fetch ?? globalThis.fetch, attempt),
  };
  const limits = {
    attempt,
    deadlineMs: DEADLINE_MS,
    clock: options.clock ?? systemClock,
    signal,
  };
  await callWithin(
    (signal) => connectClient(PingService, transport).ping({ data: options.name }, { signal }),
    limits,
  );
  const { runner } = await callWithin((signal) =>
    connectClient(RunnerService, transport).register({
      name: options.name,
      token: options.registrationToken.reveal(),
      labels: [...options.labels],
      version: options.version ?? "",
    }, { signal }), limits);
  if (runner === undefined || runner.uuid === "" || runner.token === "") {
    throw giteaError("not_gitea", attempt, "the answer holds no uuid and token");
  }
  return { uuid: runner.uuid, token: new Secret(runner.token), id: runner.id, name: runner.name };
}
