import { type BackendName, isBackendName } from "../../controller/model/ids.ts";
import { readIfThere, removeIfThere, statIfThere } from "../../lib/if_there.ts";
import { isObject } from "../../lib/json_object.ts";
import { replaceFileDurably } from "../../lib/replace_file.ts";
import { hiddenName, isHalfway, isHidden } from "./hidden.ts";
import { encodeMeta, type Meta, parseMeta } from "./meta.ts";
import type { ProcessRef } from "./proc.ts";

/**
 * One executor's folder. It belongs to the controller, so that the job can neither rename nor remove
 * what is in it; `home`, `tmp` and the three files that the wrapper writes belong to the executor.
 *
 * ```
 * <root>/<name>/creator    who made it (a folder without meta.json is one that is being made)
 *               user       unix user given to it
 *               meta.json  see Meta; written before the environment is handed over
 *               home/ tmp/ output  exit  main
 *               terminal   the marker
 *               deleting   a delete has begun
 * ```
 * A name is claimed by renaming a filled folder to it: atomic, and never seen half made.
 */

/** Who made a folder. */
export interface Creator {
  readonly backend: BackendName;
  /** Random id of the backend object. */
  readonly instance: string;
  readonly process: ProcessRef;
  readonly bootId: string;
}

/** Markers: files whose presence says it all. */
export type Marker = "terminal" | "deleting";

/** No meta.json: being made, or left behind half made. */
export interface Unfinished {
  readonly kind: "unfinished";
  readonly creator: Creator | undefined;
  readonly userId: number | null;
}

/** What a folder says, but for the processes. */
export type FolderState =
  | { readonly kind: "made"; readonly meta: Meta; readonly markers: ReadonlySet<Marker> }
  | Unfinished
  | {
    readonly kind: "unreadable";
    readonly creator: Creator | undefined;
    readonly uid: string;
    readonly since: number;
    readonly userId: number | null;
    readonly markers: ReadonlySet<Marker>;
  };

const WRAPPER_FILES = ["output", "exit", "main"] as const;

/** Claims `name` under `root`; resolves to its folder, or undefined when the name is taken. */
export async function claimFolder(
  root: string,
  options: { readonly name: string; readonly creator: Creator; readonly id: string },
): Promise<string | undefined> {
  const draft = `${root}/${hiddenName("new", options.creator, options.id)}`;
  await Deno.mkdir(draft);
  try {
    await Deno.chmod(draft, 0o711);
    await replaceFileDurably(`${draft}/creator`, JSON.stringify(options.creator));
    for (const directory of ["home", "tmp"]) {
      await Deno.mkdir(`${draft}/${directory}`, { mode: 0o700 });
    }
    for (const file of WRAPPER_FILES) {
      await Deno.writeFile(`${draft}/${file}`, new Uint8Array(), { mode: 0o600 });
    }
    const folder = `${root}/${options.name}`;
    await Deno.rename(draft, folder);
    return folder;
  } catch (error) {
    await removeIfThere(draft, { recursive: true });
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(String(code))) return undefined;
    throw error;
  }
}

/** Gives the executor's part of the folder to its user. */
export async function giveTo(folder: string, userId: number): Promise<void> {
  for (const path of ["home", "tmp", ...WRAPPER_FILES]) {
    await Deno.chown(`${folder}/${path}`, userId, userId);
  }
}

/** Writes `meta.json`: from here on the executor exists. */
export function writeMeta(folder: string, meta: Meta): Promise<void> {
  return replaceFileDurably(`${folder}/meta.json`, encodeMeta(meta));
}

/** Sets a marker; it survives a power failure once this resolves. */
export async function setMarker(folder: string, marker: Marker): Promise<void> {
  try {
    await replaceFileDurably(`${folder}/${marker}`, "");
  } catch (error) {
    // Somebody else has removed the executor meanwhile.
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Reads a folder; undefined when there is none. */
export async function readFolder(folder: string): Promise<FolderState | undefined> {
  const text = await readIfThere(`${folder}/meta.json`);
  if (text === undefined) {
    const info = await statIfThere(folder);
    if (info === undefined || !info.isDirectory) return undefined;
    const [creator, userId] = await Promise.all([readCreator(folder), readUser(folder)]);
    return { kind: "unfinished", creator, userId };
  }
  const markers = new Set<Marker>();
  for (const marker of ["terminal", "deleting"] as const) {
    if (await statIfThere(`${folder}/${marker}`) !== undefined) markers.add(marker);
  }
  const meta = parseMeta(text);
  if (meta !== undefined && folder.endsWith(`/${meta.name}`)) {
    return { kind: "made", meta, markers };
  }
  const info = await statIfThere(folder);
  if (info === undefined) return undefined;
  return {
    kind: "unreadable",
    creator: await readCreator(folder),
    uid: `unreadable-${info.ino ?? 0}`,
    since: info.mtime?.getTime() ?? 0,
    userId: await readUser(folder),
    markers,
  };
}

/** Names of the executors' folders under `root`. */
export async function listFolders(root: string): Promise<string[]> {
  return (await directoriesIn(root)).filter((name) => !isHidden(name)).sort();
}

/** Names of the folders under `root` that are being filled or removed. */
export async function listHalfway(root: string): Promise<string[]> {
  return (await directoriesIn(root)).filter(isHalfway);
}

async function directoriesIn(root: string): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(root)) {
    if (entry.isDirectory) names.push(entry.name);
  }
  return names;
}

/** Frees the name at once, then removes what was there, now called `grave`. Absent is success. */
export async function discardFolder(
  root: string,
  options: { readonly name: string; readonly grave: string },
): Promise<void> {
  const grave = `${root}/${options.grave}`;
  try {
    await Deno.rename(`${root}/${options.name}`, grave);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  await removeIfThere(grave, { recursive: true });
}

/** Who made a folder; undefined when it does not say. */
export async function readCreator(folder: string): Promise<Creator | undefined> {
  return parseCreator(await readIfThere(`${folder}/creator`));
}

async function readUser(folder: string): Promise<number | null> {
  const userId = Number.parseInt(await readIfThere(`${folder}/user`) ?? "", 10);
  return Number.isNaN(userId) ? null : userId;
}

function parseCreator(text: string | undefined): Creator | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || !isObject(value["process"])) return undefined;
    const { backend, instance, bootId } = value;
    const { pid, startTime } = value["process"];
    if (!isBackendName(backend) || typeof instance !== "string") return undefined;
    if (typeof bootId !== "string" || typeof pid !== "number") return undefined;
    if (typeof startTime !== "string") return undefined;
    return { backend, instance, bootId, process: { pid, startTime } };
  } catch {
    return undefined;
  }
}
