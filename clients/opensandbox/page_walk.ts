import type { Sandbox } from "../../backends/vm/sandboxes.ts";
import { malformed } from "./answer.ts";
import type { Page } from "./sandbox.ts";

/** The server takes 1 to 200. */
export const PAGE_SIZE = 100;
/** 20,000 sandboxes: ten times what a server is made for. */
const MAX_PAGES = 200;
/** Of one list, when sandboxes come and go meanwhile. */
const MAX_WALKS = 4;

/** How one walk through the pages has ended. */
interface Walk {
  /** Nothing has moved meanwhile: it has met all. */
  readonly isCalm: boolean;
  /** It has come to the last page. */
  readonly ended: boolean;
  /** How many there are, as the last page says. */
  readonly total: number;
}

/**
 * Every sandbox on the pages that `read` gets, numbered from 1. Pages are offsets: one that goes while we
 * walk hides another, so that what any of a few walks has met is told. Rejects with a `SandboxError` when
 * that is fewer than the server counts, and with what `read` rejects with.
 */
export async function walkPages(read: (number: number) => Promise<Page>): Promise<Sandbox[]> {
  const found = new Map<string, Sandbox>();
  let last = await walkOnce(read, found);
  for (let walks = 1; walks < MAX_WALKS && !last.isCalm; walks++) {
    last = await walkOnce(read, found);
  }
  // None of those that are missing may be taken for gone.
  if (!last.ended || found.size < last.total) {
    throw malformed(`${found.size} sandboxes on its pages, ${last.total} by its own count`);
  }
  return [...found.values()];
}

/** Once through all pages; adds what it meets to `found`. */
async function walkOnce(
  read: (number: number) => Promise<Page>,
  found: Map<string, Sandbox>,
): Promise<Walk> {
  const seen = new Set<string>();
  let [least, most] = [Infinity, 0];
  for (let number = 1; number <= MAX_PAGES; number++) {
    const { sandboxes, total, hasNext } = await read(number);
    const before = seen.size;
    for (const sandbox of sandboxes) {
      seen.add(sandbox.id);
      found.set(sandbox.id, sandbox);
    }
    [least, most] = [Math.min(least, total), Math.max(most, total)];
    if (!hasNext) return { isCalm: least === most && seen.size >= most, ended: true, total };
    // The borders of the pages have moved by a whole page, or there is no end to them.
    if (seen.size === before) return { isCalm: false, ended: false, total };
  }
  throw malformed(`more than ${MAX_PAGES} pages of sandboxes`);
}
