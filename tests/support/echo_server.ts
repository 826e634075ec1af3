import { Buffer } from "node:buffer";
import { serveUnix, streamHandler } from "../../clients/grpc/server.ts";
import type { Method } from "../../clients/grpc/method.ts";
import { aborted } from "../../lib/abortable.ts";

const bytes = {
  encode: (value: Uint8Array) => Buffer.from(value),
  decode: (value: Uint8Array) => new Uint8Array(value),
};

/** Answers with the request, and keeps the stream open. */
export const repeat: Method<Uint8Array, Uint8Array> = {
  path: "/test.Echo/Repeat",
  request: bytes,
  response: bytes,
};

if (import.meta.main) {
  serveUnix(Deno.args[0] ?? "", [
    streamHandler(repeat, async function* (request, { signal }) {
      yield request;
      await aborted(signal);
    }),
  ]);
}
