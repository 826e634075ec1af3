import type { ExecutorName } from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import { decodeAnnotations } from "./annotations.ts";
import type { Sandbox } from "./sandboxes.ts";
import { BOUND, boundKey, nameOf } from "./status.ts";

/** Sandboxes by the executor that they say to be, in the order of the first of each. */
export function groupsOf(sandboxes: readonly Sandbox[], prefix: string): Sandbox[][] {
  return [...Map.groupBy(sandboxes, (sandbox) => nameOf(sandbox, prefix)).values()];
}

/**
 * The sandbox that is the executor, of several of its name: the one that the assignment's record names,
 * which is the only one that can have claimed; else the one whose identity was bound; else the one that
 * a create has given out; else the oldest (ADR 0035). Undefined when there is none.
 * `sandboxes`: oldest first.
 */
export function keptOf(
  sandboxes: readonly Sandbox[],
  { prefix, given, recorded }: {
    readonly prefix: string;
    readonly given: ReadonlyMap<ExecutorName, string>;
    /** What the record names; null when there is none, or it names none. */
    readonly recorded: string | null;
  },
): Sandbox | undefined {
  return sandboxes.find(({ id }) => id === recorded) ??
    sandboxes.find(({ metadata }) => metadata[boundKey(prefix)] === BOUND) ??
    sandboxes.find((sandbox) => given.get(nameOf(sandbox, prefix)) === sandbox.id) ??
    sandboxes.find(({ state }) => state !== "Stopping") ?? sandboxes[0];
}

/**
 * Those that were made for the same executor as `kept`, by a create whose answer was lost: the same
 * signature says so. Any other of that name is somebody else's, and left alone.
 */
export function spareOf(
  sandboxes: readonly Sandbox[],
  kept: Sandbox,
  prefix: string,
): readonly Sandbox[] {
  const signature = signatureOf(kept, prefix);
  return sandboxes.filter((sandbox) =>
    sandbox.id !== kept.id && sandbox.state !== "Stopping" && signature !== undefined &&
    signatureOf(sandbox, prefix) === signature
  );
}

function signatureOf({ metadata }: Sandbox, prefix: string): string | undefined {
  const decoded = decodeAnnotations(metadata, prefix);
  return decoded.kind === "decoded"
    ? decoded.annotations[metadataKeys(prefix).annotations.signature]
    : undefined;
}
