/** Longer ones are not worth keeping. */
const MAX_PATH_CHARS = 2_000;

/**
 * Where to lead after sign-in: `wanted` when it is a path of our own, `/` otherwise. Nothing that a
 * browser could read as another site (`//host`, `/\host`, a tab between) and nothing of sign-in itself.
 */
export function ownPath(wanted: string | null | undefined): string {
  // Printable ASCII only: browsers drop tabs and line ends before they read a URL.
  if (wanted === null || wanted === undefined || wanted.length > MAX_PATH_CHARS) return "/";
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(wanted) || wanted.includes("\\")) return "/";
  const base = "http://own.invalid";
  if (!URL.canParse(wanted, base)) return "/";
  const { origin, pathname, search } = new URL(wanted, base);
  if (origin !== base || pathname.startsWith("//") || /^\/sign-(in|out)(\/|$)/.test(pathname)) {
    return "/";
  }
  return `${pathname}${search}`;
}
