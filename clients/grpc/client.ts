import { Client, type ClientReadableStream, credentials, Metadata } from "@grpc/grpc-js";
import { onAbort } from "../../lib/abortable.ts";
import { guardSessionsEverywhere } from "../../lib/http2_session.ts";
import { GrpcError } from "./grpc_error.ts";
import type { Method } from "./method.ts";

/** Options of one call. `deadlineMs` bounds the whole call; without it only the signal ends it. */
export interface GrpcCall {
  readonly signal: AbortSignal;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
}

/** One connection to a gRPC server. It reconnects by itself; dispose it to close. */
export interface GrpcClient extends Disposable {
  /** Throws {@link GrpcError}, or the signal's reason. */
  unary<I, O>(method: Method<I, O>, request: I, call: GrpcCall): Promise<O>;
  /**
   * The answers of a server stream. Iteration throws {@link GrpcError}, or the signal's reason, and
   * ends without error when the server ends the stream with OK. Leaving the loop cancels the call.
   */
  stream<I, O>(method: Method<I, O>, request: I, call: GrpcCall): AsyncIterable<O>;
}

/**
 * A client of the server behind a unix socket, without TLS: the socket's own permissions and the
 * peer's credentials are the protection.
 */
export function openUnixClient(path: string): GrpcClient {
  guardSessionsEverywhere();
  const client = new Client(`unix:${path}`, credentials.createInsecure(), {
    // A server on this machine comes back within moments; the default waits up to two minutes.
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
    // The global pool would keep the connection, and a timer, after close.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    // Authority of a unix socket is its path otherwise, which Go servers refuse.
    "grpc.default_authority": "localhost",
  });
  return {
    unary(method, request, call) {
      return new Promise((resolve, reject) => {
        if (call.signal.aborted) return reject(call.signal.reason);
        const handle = client.makeUnaryRequest(
          method.path,
          method.request.encode,
          method.response.decode,
          request,
          metadataOf(call),
          optionsOf(call),
          (error, value) => {
            cancelling[Symbol.dispose]();
            if (error !== null) {
              return reject(call.signal.aborted ? call.signal.reason : GrpcError.from(error));
            }
            if (value === undefined) return reject(new GrpcError("INTERNAL", "Answer is missing"));
            resolve(value);
          },
        );
        const cancelling = onAbort(call.signal, () => handle.cancel());
      });
    },
    async *stream(method, request, call) {
      call.signal.throwIfAborted();
      const handle: ClientReadableStream<ReturnType<typeof method.response.decode>> = client
        .makeServerStreamRequest(
          method.path,
          method.request.encode,
          method.response.decode,
          request,
          metadataOf(call),
          optionsOf(call),
        );
      using _cancelling = onAbort(call.signal, () => handle.cancel());
      // Cancelling makes the stream fail once more when nobody iterates any longer.
      handle.on("error", () => {});
      try {
        for await (const message of handle) yield message;
      } catch (error) {
        throw call.signal.aborted ? call.signal.reason : GrpcError.from(error);
      } finally {
        handle.cancel();
      }
    },
    [Symbol.dispose]: () => client.close(),
  };
}

function metadataOf(call: GrpcCall): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(call.metadata ?? {})) metadata.set(key, value);
  return metadata;
}

function optionsOf(call: GrpcCall): { deadline?: number } {
  // grpc-js wants wall-clock time.
  return call.deadlineMs === undefined ? {} : { deadline: Date.now() + call.deadlineMs };
}
