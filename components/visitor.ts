import { createContext } from "preact";

/** Who looks at a page, as far as the page shows it. */
export type Visitor =
  /** Nothing says who may look: everybody on this machine. */
  | { readonly kind: "local" }
  | { readonly kind: "anonymous" }
  | { readonly kind: "token"; readonly name: string; readonly role: string }
  /** By cookie: its forms carry `proof`. */
  | {
    readonly kind: "session";
    readonly name: string;
    readonly role: string;
    readonly proof: string;
  };

/** The visitor of the page around. */
export const VisitorContext = createContext<Visitor>({ kind: "local" });
