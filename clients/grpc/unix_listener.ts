import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";

/** A unix socket that is listened on. Disposing closes it, its connections too, and removes the path. */
export interface UnixListener {
  [Symbol.asyncDispose](): Promise<void>;
}

const READ_BYTES = 64 * 1024;

/**
 * Listens on `path`, which must not exist, and gives each connection to `accept`. Throws when it
 * cannot listen.
 *
 * Not `node:net`: the socket on which a server of it listens is inherited by every child process in
 * Deno 2.9.6. An executor that outlives a killed controller would then hold the Workload API's
 * socket open, and wait in its backlog for an answer of its own; and its steps could answer others.
 */
export function listenUnix(path: string, accept: (connection: Duplex) => void): UnixListener {
  const listener = Deno.listen({ transport: "unix", path });
  const open = new Set<Duplex>();
  const accepting = (async () => {
    for await (const connection of listener) {
      const stream = streamOf(connection);
      open.add(stream);
      stream.once("close", () => open.delete(stream));
      accept(stream);
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      listener.close();
      // One that is being accepted right now comes all the same.
      await accepting;
      for (const stream of open) stream.destroy();
      await Deno.remove(path).catch((error) => {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      });
    },
  };
}

/** A connection as the streams of Node; its end and its failures are the stream's. */
function streamOf(connection: Deno.Conn): Duplex {
  const buffer = new Uint8Array(READ_BYTES);
  return new Duplex({
    read() {
      connection.read(buffer).then(
        (count) => this.push(count === null ? null : Buffer.from(buffer.slice(0, count))),
        (error) => this.destroy(error),
      );
    },
    write(chunk: Uint8Array, _encoding, done) {
      writeAll(connection, chunk).then(() => done(), done);
    },
    final(done) {
      connection.closeWrite().then(() => done(), () => done());
    },
    destroy(error, done) {
      try {
        connection.close();
      } catch {
        // Closed by the other side already.
      }
      done(error);
    },
  });
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await connection.write(bytes.subarray(done));
}
