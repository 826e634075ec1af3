/** The value of a cookie; undefined when there is none, or more than one of that name. */
export function readCookie(headers: Headers, name: string): string | undefined {
  const values = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}

/**
 * `Set-Cookie` of ours: no script reads it, no other site's request carries it but a plain link here.
 * `maxAgeSeconds` 0 takes it away.
 */
export function cookieHeader(
  name: string,
  value: string,
  { secure, maxAgeSeconds }: { readonly secure: boolean; readonly maxAgeSeconds: number },
): string {
  const flags = secure ? "; Secure" : "";
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${flags}`;
}
