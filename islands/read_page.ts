/** One that has not come by then will not: its connection is gone, and the browser has not noticed. */
const READ_MS = 20_000;

/** A page of our own server as JSON; undefined when it cannot be had now. Never rejects. */
export async function readPage<D>(href: string, signal: AbortSignal): Promise<D | undefined> {
  try {
    const answer = await fetch(href, {
      headers: { accept: "application/json" },
      signal: AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]),
    });
    return answer.ok ? await answer.json() as D : undefined;
  } catch {
    return undefined; // The server is away: it is asked again.
  }
}
