/** Names of the islands: files of islands/ that a page may start. */
export const ISLANDS = [
  "now",
  "assignment",
  "executors",
  "backend",
  "canary",
  "leader",
  "history",
  "audit",
  "health",
  "operation",
] as const;
/** One of {@link ISLANDS}. */
export type IslandName = (typeof ISLANDS)[number];
