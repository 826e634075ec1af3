import type { Page } from "playwright-core";

/**
 * What Chromium says of everything that it was loading when an address of this machine came or went, as
 * with each container of a suite beside this one. Nothing of ours has failed then.
 */
export const NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED";

const TRIES = 5;

/** Lets `page.goto()` go again where the machine's network changed before all of the page was there. */
export function steadyPage(page: Page): Page {
  let changed = false;
  page.on("requestfailed", (request) => {
    if (request.failure()?.errorText === NETWORK_CHANGED) changed = true;
  });
  const goto = page.goto.bind(page);
  page.goto = async (url, options) => {
    for (let tried = 1;; tried++) {
      changed = false;
      try {
        const answer = await goto(url, options);
        if (!changed || tried === TRIES) return answer;
      } catch (error) {
        if (tried === TRIES || !String(error).includes(NETWORK_CHANGED)) throw error;
      }
    }
  };
  return page;
}
