import { Buffer } from "node:buffer";
import { type DescMessage, fromBinary, type MessageShape, toBinary } from "../../proto/runtime.ts";

/**
 * How a message becomes bytes, as the library takes them, and back. `decode` throws on bytes that are
 * not such a message.
 */
export interface Codec<T> {
  encode(message: T): Buffer;
  decode(bytes: Uint8Array): T;
}

/** One gRPC method: its full path (`/package.Service/Method`) and the codecs of its messages. */
export interface Method<I, O> {
  readonly path: string;
  readonly request: Codec<I>;
  readonly response: Codec<O>;
}

/** Describes a method by its path and the generated schemas of its messages. */
export function methodOf<I extends DescMessage, O extends DescMessage>(
  path: `/${string}/${string}`,
  messages: { readonly request: I; readonly response: O },
): Method<MessageShape<I>, MessageShape<O>> {
  return { path, request: codecOf(messages.request), response: codecOf(messages.response) };
}

function codecOf<S extends DescMessage>(schema: S): Codec<MessageShape<S>> {
  return {
    encode(message) {
      const bytes = toBinary(schema, message);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    decode: (bytes) => fromBinary(schema, bytes),
  };
}
