import type { Executor } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { endingOf } from "./endings.ts";
import { type FolderState, listFolders, readFolder } from "./folder.ts";
import type { Making } from "./making.ts";
import { withTerminal } from "./meta.ts";
import type { Target } from "./processes.ts";

/** What a folder and the processes say about one executor, and how to get at it. */
export interface Seen {
  readonly executor: Executor;
  readonly target: Target;
}

/** Where executors are, and in which boot of the machine. */
export type Place = Pick<Making, "root" | "backend" | "creator">;

/** Looks at one executor; undefined when there is none of this backend. */
export async function look(place: Place, name: string): Promise<Seen | undefined> {
  const state = await readMade(place, name);
  switch (state?.kind) {
    case undefined:
      return undefined;
    case "unreadable":
      return seenUnreadable(`${place.root}/${name}`, name, state);
    case "made":
      return await seenMade(place, name, state);
  }
}

/** Looks at all. */
export async function lookAtAll(place: Place): Promise<Executor[]> {
  const names = await listFolders(place.root);
  const all = await Promise.all(names.map((name) => look(place, name)));
  return all.flatMap((seen) => seen === undefined ? [] : [seen.executor]);
}

async function seenMade(
  place: Place,
  name: string,
  { meta, markers }: Extract<FolderState, { kind: "made" }>,
): Promise<Seen> {
  const folder = `${place.root}/${name}`;
  const sameBoot = meta.bootId === place.creator.bootId;
  const ended = await endingOf(folder, { process: meta.process, sameBoot });
  const terminating = markers.has("deleting");
  const terminal = markers.has("terminal");
  const executor: Executor = {
    name: name as ExecutorName,
    uid: meta.uid,
    phase: terminating ? "terminating" : ended === null ? "running" : "ended",
    metadata: terminal ? withTerminal(meta.metadata) : meta.metadata,
    createdAt: meta.createdAt,
    identityTarget: meta.userId === null ? name : String(meta.userId),
    terminating,
    ended,
    terminal,
    node: null,
    waiting: null,
  };
  const leader = sameBoot ? meta.process : null;
  return { executor, target: { folder, leader, userId: meta.userId } };
}

function seenUnreadable(
  folder: string,
  name: string,
  { uid, since, userId, markers }: Extract<FolderState, { kind: "unreadable" }>,
): Seen {
  const terminating = markers.has("deleting");
  const executor: Executor = {
    name: name as ExecutorName,
    uid,
    phase: terminating ? "terminating" : "unreadable",
    metadata: { labels: {}, annotations: {} },
    createdAt: since,
    identityTarget: null,
    terminating,
    ended: null,
    terminal: markers.has("terminal"),
    node: null,
    waiting: null,
  };
  return { executor, target: { folder, leader: null, userId } };
}

/** State of an executor's folder of this backend; half-made ones count as absent. */
async function readMade(
  place: Place,
  name: string,
): Promise<Exclude<FolderState, { kind: "unfinished" }> | undefined> {
  const state = await readFolder(`${place.root}/${name}`);
  if (state === undefined || state.kind === "unfinished") return undefined;
  const backend = state.kind === "made" ? state.meta.backend : state.creator?.backend;
  return backend === undefined || backend === place.backend ? state : undefined;
}
