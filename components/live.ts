import { createContext } from "preact";

/** How the event stream does. `static`: the page runs no script. Times in milliseconds since the epoch. */
export type Live =
  | { readonly kind: "static" }
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  /** The tab is hidden: the stream is closed on purpose. */
  | { readonly kind: "paused" }
  | { readonly kind: "lost"; readonly since: number };

/** The state of the page's stream. */
export const LiveContext = createContext<Live>({ kind: "static" });
