import { oneLine } from "../../lib/one_line.ts";
import type { Backend } from "../backend.ts";
import type { Stranger } from "../strangers.ts";

/** Names of executors that are told; of what is none of ours one will do. */
const SHOWN = 3;

/**
 * The self test of a backend: it lists its executors, each is accounted for, and nothing else is in
 * their place. Resolves to what it found, for people; rejects with what is the matter and the way out,
 * with the backend's `BackendError`, or with the signal's reason.
 */
export async function checkBackend(
  backend: Pick<Backend, "list" | "others">,
  strangers: readonly Stranger[],
  signal: AbortSignal,
): Promise<string> {
  const executors = await backend.list({ signal });
  const others = await backend.others?.({ signal }) ?? [];
  if (strangers.length > 0) {
    const names = strangers.slice(0, SHOWN).map(({ executor }) => executor.name).join(", ");
    throw new Error(
      `Look at the page Executors: ${strangers.length} are unknown or foreign (${names}); ${ALONE}`,
    );
  }
  const [first] = others;
  if (first !== undefined) {
    throw new Error(
      `Find out whose they are: ${others.length} that no controller of executors has made, one of ` +
        `them "${oneLine(first, 80)}"; ${ALONE}`,
    );
  }
  return `lists ${executors.length} executors, all of them accounted for, and nothing else`;
}

const ALONE = "the place of our executors is for us alone";
