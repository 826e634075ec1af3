/** Names of the islands: files of islands/ that a page may start. */
export const ISLANDS = ["now", "assignment"] as const;
/** One of {@link ISLANDS}. */
export type IslandName = (typeof ISLANDS)[number];
