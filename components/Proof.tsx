import { useContext } from "preact/hooks";
import { VisitorContext } from "./visitor.ts";

/** Shows the server that a form is one of this session's own pages; nothing where no cookie lets in. */
export function Proof() {
  const visitor = useContext(VisitorContext);
  return visitor.kind === "session"
    ? <input type="hidden" name="csrf" value={visitor.proof} />
    : null;
}
