import { dirname, resolve } from "node:path";

/**
 * The topmost folder on the way to `path`, that one included, which users other than its owner and
 * group cannot pass through (no `o+x`); undefined when they get there. Rejects as `Deno.stat` does.
 */
export async function closedFolder(path: string): Promise<string | undefined> {
  let closed: string | undefined;
  for (let at = resolve(path);; at = dirname(at)) {
    const { mode } = await Deno.stat(at);
    if (mode !== null && (mode & 0o001) === 0) closed = at;
    if (at === dirname(at)) return closed;
  }
}
