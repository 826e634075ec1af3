import type { Clock } from "../lib/clock.ts";
import { removeIfThere } from "../lib/if_there.ts";
import type { X509SVIDResponse } from "../proto/gen/workload/workload_pb.ts";
import { X509SVIDResponseSchema } from "../proto/gen/workload/workload_pb.ts";
import { create } from "../proto/runtime.ts";
import type { Authority, IssuedSvid } from "../clients/x509/trust_domain.ts";
import { GrpcError } from "../clients/grpc/grpc_error.ts";
import { type ServerCall, serveUnix, streamHandler } from "../clients/grpc/server.ts";
import { fetchX509Svid } from "../clients/spiffe/workload_protocol.ts";

/** A Workload API for whoever can open its socket: that is how callers are told apart here. */
export interface WorkloadSocket extends AsyncDisposable {
  /** What it hands out from now on; null takes the identity away and ends open streams. */
  bind(spiffeId: string | null): void;
}

/** What {@link openWorkloadSocket} needs. */
export interface WorkloadSocketDeps {
  readonly authority: Authority;
  readonly clock: Clock;
}

/** Where and for whom. */
export interface WorkloadSocketOptions {
  readonly path: string;
  /** Owner of the socket; null = ours. */
  readonly userId: number | null;
  readonly ttlMs: number;
}

/** Timers stand still while a machine sleeps, and do not follow a clock that is set. */
const LOOK_MS = 15_000;

/**
 * Serves the Workload API on a socket of its own that only `userId` may open. An older socket of
 * that path is replaced. Without an identity the stream ends with PERMISSION_DENIED "no identity
 * issued", as SPIRE does; with one, a new SVID follows at each half of its life. Throws when the
 * socket cannot be made or given to that user.
 */
export async function openWorkloadSocket(
  { authority, clock }: WorkloadSocketDeps,
  { path, userId, ttlMs }: WorkloadSocketOptions,
): Promise<WorkloadSocket> {
  let bound: { readonly spiffeId: string; readonly lost: AbortController } | null = null;
  let cached: { readonly spiffeId: string; readonly svid: IssuedSvid } | null = null;

  const svidFor = async (spiffeId: string) => {
    const now = clock.now();
    const left = cached?.spiffeId === spiffeId ? cached.svid.expiresAt - now : 0;
    // More than its whole life: the clock was set back, and it is not valid yet.
    if (cached !== null && left > ttlMs / 2 && left <= ttlMs) return cached.svid;
    const svid = await authority.issue({ uris: [spiffeId], now, ttlMs });
    cached = { spiffeId, svid };
    return svid;
  };
  const answer = async function* (call: ServerCall): AsyncIterable<X509SVIDResponse> {
    if (call.metadata("workload.spiffe.io") !== "true") {
      throw new GrpcError("INVALID_ARGUMENT", "security header missing from request");
    }
    if (bound === null) throw new GrpcError("PERMISSION_DENIED", "no identity issued");
    const { spiffeId, lost } = bound;
    const signal = AbortSignal.any([call.signal, lost.signal]);
    let sent: IssuedSvid | null = null;
    while (true) {
      const svid = await svidFor(spiffeId);
      signal.throwIfAborted();
      if (svid !== sent) yield responseOf(spiffeId, svid, authority.bundleDer);
      sent = svid;
      const wait = svid.expiresAt - ttlMs / 2 - clock.now();
      await clock.sleep(Math.min(Math.max(wait, 1_000), LOOK_MS), signal);
    }
  };

  await removeIfThere(path);
  const server = serveUnix(path, [
    streamHandler(fetchX509Svid, (_request, call) => answer(call)),
  ]);
  try {
    await Deno.chmod(path, 0o600);
    if (userId !== null) await Deno.chown(path, userId, null);
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
  return {
    bind(spiffeId) {
      if (bound?.spiffeId === spiffeId) return;
      bound?.lost.abort(new GrpcError("PERMISSION_DENIED", "no identity issued"));
      bound = spiffeId === null ? null : { spiffeId, lost: new AbortController() };
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await removeIfThere(path);
    },
  };
}

function responseOf(spiffeId: string, svid: IssuedSvid, bundle: Uint8Array): X509SVIDResponse {
  return create(X509SVIDResponseSchema, {
    svids: [{ spiffeId, x509Svid: svid.certificateDer, x509SvidKey: svid.keyDer, bundle }],
  });
}
