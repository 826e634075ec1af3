import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";

const POLL_MS = 20;
/** A NATS server speaks first (protocol: `INFO {...}`). */
const GREETING = "INFO ";

/**
 * Resolves when something on the loopback `port` greets as a NATS server does. Rejects with the
 * signal's reason, also while somebody else's server accepts and says nothing.
 */
export async function natsAnswers(
  port: number,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  while (!(await greets(port, signal))) await clock.sleep(POLL_MS, signal);
}

async function greets(port: number, signal: AbortSignal): Promise<boolean> {
  try {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port, signal });
    const buffer = new Uint8Array(GREETING.length);
    const read = await abortable(connection.read(buffer), signal);
    return read === buffer.length && new TextDecoder().decode(buffer) === GREETING;
  } catch {
    return false;
  }
}
