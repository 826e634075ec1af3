/** A host as sockets take it: a URL's IPv6 address without the brackets. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}
