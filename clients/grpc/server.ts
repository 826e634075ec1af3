import {
  type handleServerStreamingCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { abortable } from "../../lib/abortable.ts";
import { guardSessionsEverywhere } from "../../lib/http2_session.ts";
import { GrpcError, grpcNumber } from "./grpc_error.ts";
import type { Method } from "./method.ts";
import { listenUnix, type UnixListener } from "./unix_listener.ts";

/** What a handler sees of one call. */
export interface ServerCall {
  /** Aborts when the client goes or the server closes. */
  readonly signal: AbortSignal;
  /** First value of a metadata key; undefined without one. */
  metadata(key: string): string | undefined;
}

/** A server-streaming method and what answers it. Throw {@link GrpcError} to end with its status. */
export interface StreamHandler {
  add(server: GrpcStreams): void;
}

/** Where {@link streamHandler} registers itself. */
export interface GrpcStreams {
  stream<I, O>(
    method: Method<I, O>,
    answer: (request: I, call: ServerCall) => AsyncIterable<O>,
  ): void;
}

/**
 * Pairs a method with its handler. The stream ends with OK when the iteration does. What it returns
 * hides the types of the messages, so that one list can hold handlers of different methods.
 */
export function streamHandler<I, O>(
  method: Method<I, O>,
  answer: (request: I, call: ServerCall) => AsyncIterable<O>,
): StreamHandler {
  return { add: (server) => server.stream(method, answer) };
}

/**
 * Serves gRPC on a unix socket, without TLS. The path must be at most 107 bytes long and not exist.
 * Disposing ends every call and removes the socket. Throws an `Error` when it cannot listen.
 */
export function serveUnix(path: string, handlers: readonly StreamHandler[]): AsyncDisposable {
  guardSessionsEverywhere();
  const server = new Server();
  const closing = new AbortController();
  const services: GrpcStreams = {
    stream(method, answer) {
      const handle: handleServerStreamingCall<
        ReturnType<typeof method.request.decode>,
        ReturnType<typeof method.response.decode>
      > = async (call) => {
        const gone = new AbortController();
        call.on("cancelled", () => gone.abort(new DOMException("The client went", "AbortError")));
        const signal = AbortSignal.any([gone.signal, closing.signal]);
        try {
          const metadata = (key: string) => {
            const value = call.metadata.get(key)[0];
            return typeof value === "string" ? value : undefined;
          };
          for await (const message of answer(call.request, { signal, metadata })) {
            if (!call.write(message)) await drained(call, signal);
          }
          call.end();
        } catch (error) {
          if (gone.signal.aborted) return;
          const { code, message } = GrpcError.from(error);
          call.emit("error", { code: grpcNumber(code), details: message });
        }
      };
      const [, service = "", name = ""] = method.path.split("/");
      const definition: ServiceDefinition = {
        [name]: {
          path: method.path,
          requestStream: false,
          responseStream: true,
          requestSerialize: method.request.encode,
          requestDeserialize: method.request.decode,
          responseSerialize: method.response.encode,
          responseDeserialize: method.response.decode,
        },
      };
      if (service === "" || name === "") {
        throw new TypeError(`Serve gRPC: bad path "${method.path}"`);
      }
      const implementation: UntypedServiceImplementation = { [name]: handle };
      server.addService(definition, implementation);
    },
  };
  for (const handler of handlers) handler.add(services);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  let listener: UnixListener;
  try {
    listener = listenUnix(path, (connection) => {
      // A client that went away is no failure of ours.
      connection.on("error", () => {});
      injector.injectConnection(connection);
    });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Serve gRPC on "${path}": ${why}`, { cause });
  }
  return {
    async [Symbol.asyncDispose]() {
      closing.abort(new GrpcError("UNAVAILABLE", "the server is closing"));
      injector.destroy();
      await new Promise<void>((resolve) => {
        server.tryShutdown(() => resolve());
        // Sessions of clients that keep calling would hold a graceful shutdown for ever.
        server.forceShutdown();
      });
      await listener[Symbol.asyncDispose]();
    },
  };
}

async function drained(
  call: { once(event: "drain", listener: () => void): unknown },
  signal: AbortSignal,
): Promise<void> {
  await abortable(new Promise<void>((resolve) => call.once("drain", resolve)), signal);
}
