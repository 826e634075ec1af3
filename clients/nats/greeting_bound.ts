import type net from "node:net";

/** What answers sends more than a NATS server's first line can hold. */
export class NoGreeting extends Error {
  override readonly name = "NoGreeting";
}

/** INFO with the addresses of a large cluster has some 10 KB. */
const MOST_BYTES = 256 * 1024;
const [CR, LF] = [13, 10];

/**
 * Ends a socket of `nats` with {@link NoGreeting} whose first line does not end within 256 KiB. The
 * library joins everything that has come with each piece that comes, and looks for the line's end in it:
 * a server of something else, which only talks, would keep this whole process busy for ever.
 */
export function boundGreeting(socket: net.Socket): void {
  const emit = socket.emit.bind(socket);
  let length = 0;
  let last = 0;
  const look = (data: Uint8Array) => {
    if (endsLine(data, last)) {
      Reflect.deleteProperty(socket, "emit");
      return;
    }
    length += data.length;
    last = data.at(-1) ?? last;
    if (length > MOST_BYTES) socket.destroy(new NoGreeting("its first line does not end"));
  };
  Object.defineProperty(socket, "emit", {
    configurable: true,
    value(event: string, ...args: unknown[]): boolean {
      const [data] = args;
      if (event === "data" && data instanceof Uint8Array) look(data);
      return emit(event, ...args);
    },
  });
}

/** Whether there is CR LF in it; `last` is the byte before. */
function endsLine(data: Uint8Array, last: number): boolean {
  if (last === CR && data[0] === LF) return true;
  for (let at = data.indexOf(LF); at >= 0; at = data.indexOf(LF, at + 1)) {
    if (data[at - 1] === CR) return true;
  }
  return false;
}
