import net from "node:net";

/**
 * `nats` 2.29 takes all listeners off its socket twice while it connects (after the dial, and after the
 * server's INFO). A connection that is reset in between has nobody to tell: the error would be an
 * uncaught one and end the process. This leaves every socket that is made as `nats` makes them
 * (`createConnection(port, host, listener)`) one listener that does nothing. The library hears of the
 * end all the same, by its own time-out.
 */
export function keepErrorListeners(): void {
  if (kept) return;
  kept = true;
  const original = net.createConnection;
  const create = (...args: Parameters<typeof original>): net.Socket => {
    const socket = original(...args);
    const [port, host] = args as readonly unknown[];
    if (typeof port === "number" && typeof host === "string") guard(socket);
    return socket;
  };
  net.createConnection = create as typeof original;
}

let kept = false;

function guard(socket: net.Socket): void {
  const remove = socket.removeAllListeners.bind(socket);
  socket.removeAllListeners = (event?: Parameters<typeof remove>[0]) => {
    // Without an argument it takes off all; `undefined` would be the name of an event.
    if (event === undefined) remove();
    else remove(event);
    socket.on("error", ignore);
    return socket;
  };
}

function ignore(): void {}
