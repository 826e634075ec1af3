import { KubeError } from "../support/kube_client.ts";

/** A condition that says why a Pod is about to be ended. */
export function disruption(reason: string, message: string): unknown {
  return {
    type: "DisruptionTarget",
    status: "True",
    reason,
    message,
    lastTransitionTime: iso(Date.now()),
  };
}

/** What `FallbackToLogsOnError` takes: the last 2048 bytes, at most 80 lines. */
export async function lastWords(file: string): Promise<string> {
  const bytes = await Deno.readFile(file).catch(() => new Uint8Array());
  return new TextDecoder().decode(bytes.slice(-2048)).split("\n").slice(-80).join("\n");
}

/** As the API writes a time: whole seconds. */
export function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

/** Nothing, when the object is gone or has changed; throws everything else. */
export function ifGone(error: unknown): undefined {
  if (error instanceof KubeError && (error.status === 404 || error.status === 409)) return;
  throw error;
}

/** Nothing, when somebody was faster; throws everything else. */
export function ifConflict(error: unknown): undefined {
  if (error instanceof KubeError && (error.status === 409 || error.status === 404)) return;
  throw error;
}
