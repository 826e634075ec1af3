import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import type { UniversalHandlerFn } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { concatBytes } from "../../lib/bytes.ts";
import { fieldCounter } from "./count_fields.ts";

/** Bounds on one message. */
export interface MessageBounds {
  /** Bytes, also after unpacking. */
  readonly readMaxBytes: number;
  /** Fields at every depth: decoding takes time and memory by their number, not by bytes. */
  readonly maxFields: number;
}

const PROTO = "application/proto";

/**
 * A handler that looks at each message before it is decoded, for callers that are not trusted: a body
 * of 35 KB may unpack to millions of empty rows, and decoding those stops everything else for
 * seconds. Only the binary form is taken, because no other can be counted cheaply.
 */
export function boundedHandler(
  handler: ConnectRouter["handlers"][number],
  bounds: MessageBounds,
): UniversalHandlerFn {
  const countFields = fieldCounter(handler.method.input);
  return (request) => {
    const { body } = request;
    if (request.header.get("content-type") !== PROTO || !isStream(body)) {
      return Promise.resolve({ status: 415 });
    }
    const header = new Headers(request.header);
    const isPacked = header.get("content-encoding") === "gzip";
    if (isPacked) {
      header.delete("content-encoding");
      header.delete("content-length");
    }
    const inspect = async function* () {
      const bytes = await readBody(body, bounds.readMaxBytes);
      const message = isPacked && bytes.length > 0
        ? await compressionGzip.decompress(bytes, bounds.readMaxBytes)
        : bytes;
      if (countFields(message, bounds.maxFields) > bounds.maxFields) {
        throw new ConnectError(
          `the message has more than ${bounds.maxFields} fields`,
          Code.ResourceExhausted,
        );
      }
      yield message;
    };
    // Read when the library asks for it, after its request gate.
    return handler({ ...request, header, body: inspect() });
  };
}

async function readBody(body: AsyncIterable<Uint8Array>, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > most) {
      throw new ConnectError(`the message is larger than ${most} bytes`, Code.ResourceExhausted);
    }
    parts.push(part);
  }
  return concatBytes(parts);
}

function isStream(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}
