import type { ExecutorName } from "../../controller/model/ids.ts";
import type { MetadataCodec } from "./metadata_codec.ts";
import type { Sandbox } from "./sandboxes.ts";

/**
 * The sandbox that is the executor, of several of its name: the one that the assignment's record names,
 * which is the only one that can have claimed; else the one whose identity was bound; else the one that
 * a create has handed out; else the oldest (ADR 0035). Undefined when there is none.
 * `sandboxes`: oldest first.
 */
export function keptOf(
  sandboxes: readonly Sandbox[],
  { codec, handedOut, recorded }: {
    readonly codec: MetadataCodec;
    readonly handedOut: ReadonlyMap<ExecutorName, string>;
    /** What the record names; null when there is none, or it names none. */
    readonly recorded: string | null;
  },
): Sandbox | undefined {
  return sandboxes.find(({ id }) => id === recorded) ??
    sandboxes.find((sandbox) => codec.isBound(sandbox)) ??
    sandboxes.find((sandbox) => handedOut.get(codec.nameOf(sandbox)) === sandbox.id) ??
    sandboxes.find(({ state }) => state !== "Stopping") ?? sandboxes[0];
}

/**
 * Those that were made for the same executor as `kept`, by a create whose answer was lost: the same
 * signature says so. Any other of that name is somebody else's, and left alone.
 */
export function spareOf(
  sandboxes: readonly Sandbox[],
  kept: Sandbox,
  codec: MetadataCodec,
): readonly Sandbox[] {
  const signature = codec.signatureOf(kept);
  if (signature === undefined) return [];
  return sandboxes.filter((sandbox) =>
    sandbox.id !== kept.id && sandbox.state !== "Stopping" &&
    codec.signatureOf(sandbox) === signature
  );
}
