/** Opens a port, or throws. */
type Listen = (
  options: { readonly hostname: string; readonly port: number },
) => Disposable & { readonly addr: Deno.Addr };

/**
 * What to listen on for every address of this machine: `::` where that takes IPv4 as well, else `0.0.0.0`:
 * there is no IPv6, or Linux keeps the two apart (`net.ipv6.bindv6only`). Asked by opening a port for a
 * moment.
 */
export function everyAddress(
  { listen = Deno.listen }: { readonly listen?: Listen } = {},
): "::" | "0.0.0.0" {
  try {
    using both = listen({ hostname: "::", port: 0 });
    return "port" in both.addr && isTaken(both.addr.port, listen) ? "::" : "0.0.0.0";
  } catch {
    return "0.0.0.0";
  }
}

/** True when IPv4's port is not free: the socket on `::` has it. */
function isTaken(port: number, listen: Listen): boolean {
  try {
    using _other = listen({ hostname: "0.0.0.0", port });
    return false;
  } catch {
    return true;
  }
}

/** `hostname` to listen on, where an empty one stands for {@link everyAddress}. */
export function listenHost(hostname: string): string {
  return hostname === "" ? everyAddress() : hostname;
}
