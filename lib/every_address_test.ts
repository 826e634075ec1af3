import assert from "node:assert/strict";
import { everyAddress, listenHost } from "./every_address.ts";

/** A machine that opens ports on these addresses, until one is open on `::`, if that takes all. */
function machine({ addresses, apart }: { readonly addresses: string[]; readonly apart: boolean }) {
  const open: string[] = [];
  return {
    open,
    listen({ hostname, port }: { readonly hostname: string; readonly port: number }) {
      if (!addresses.includes(hostname)) throw new Deno.errors.AddrNotAvailable("os error 99");
      if (open.length > 0 && !apart) throw new Deno.errors.AddrInUse("os error 98");
      open.push(hostname);
      return {
        addr: { transport: "tcp" as const, hostname, port: port || 4242 },
        [Symbol.dispose]: () => void open.splice(open.indexOf(hostname), 1),
      };
    },
  };
}

Deno.test("everyAddress() is :: only where that takes IPv4, too, and leaves no port open", () => {
  const [v6, v4] = ["::", "0.0.0.0"];
  for (
    const [addresses, apart, expected] of [
      [[v6, v4], false, v6],
      [[v6, v4], true, v4],
      [[v4], false, v4],
    ] as const
  ) {
    const it = machine({ addresses: [...addresses], apart });
    assert.equal(everyAddress(it), expected);
    assert.deepEqual(it.open, []);
  }
});

Deno.test("listenHost() reaches every address of this machine without a host, else that one", async () => {
  const { networkInterfaces } = await import("node:os");
  const here = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
    .flatMap(({ address, family }) => address === "::1" || family === "IPv4" ? [address] : []);
  using listener = Deno.listen({ hostname: listenHost(""), port: 0 });
  assert.ok(listener.addr.transport === "tcp");
  for (const hostname of new Set(["127.0.0.1", ...here])) {
    using _connection = await Deno.connect({ hostname, port: listener.addr.port });
    (await listener.accept()).close();
  }
  assert.equal(listenHost("10.0.0.7"), "10.0.0.7");
});
