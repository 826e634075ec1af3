import type { Page } from "playwright-core";

/** Scrolls the long list of waiting jobs to its end at once. */
export async function scrollToEnd(page: Page): Promise<void> {
  await page.evaluate(() => {
    const box = document.querySelector(".virtual");
    if (box !== null) box.scrollTop = box.scrollHeight;
  });
}

/** Scrolls through the long list screen by screen: every assignment that was drawn, and how many it claims. */
export async function scrollThrough(
  page: Page,
): Promise<{ readonly ids: ReadonlySet<string>; readonly total: number }> {
  const { ids, total } = await page.evaluate(async () => {
    const box = document.querySelector(".virtual");
    const drawn = new Set<string>();
    for (let top = 0; box !== null && top < box.scrollHeight; top += box.clientHeight) {
      box.scrollTop = top;
      await new Promise(requestAnimationFrame);
      await new Promise(requestAnimationFrame);
      for (const link of document.querySelectorAll(".virtual a.job-link")) {
        drawn.add((link.getAttribute("href") ?? "").split("/").at(-1) ?? "");
      }
    }
    return { ids: [...drawn], total: Number(box?.querySelector("table")?.ariaRowCount) - 1 };
  });
  return { ids: new Set(ids), total };
}
