import type { Metadata } from "../../controller/backend.ts";
import { type BackendName, isBackendName } from "../../controller/model/ids.ts";
import { isObject } from "../../lib/json_object.ts";
import type { ProcessRef } from "./proc.ts";

/** What `meta.json` holds: written once, before the executor gets its environment. No capability. */
export interface Meta {
  readonly name: string;
  readonly backend: BackendName;
  readonly uid: string;
  /** The wrapper: leader of the executor's session and process group. */
  readonly process: ProcessRef;
  readonly bootId: string;
  /** Unix user of its own; null = ours. */
  readonly userId: number | null;
  readonly createdAt: number;
  readonly metadata: Metadata;
}

const VERSION = 1;

/** The text of `meta.json`. */
export function encodeMeta(meta: Meta): string {
  return `${JSON.stringify({ version: VERSION, ...meta }, null, 1)}\n`;
}

/** Reads `meta.json`; undefined for anything that this version did not write. */
export function parseMeta(text: string): Meta | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value["version"] !== VERSION) return undefined;
  const { name, backend, uid, process, bootId, userId, createdAt, metadata } = value;
  if (typeof name !== "string" || !isBackendName(backend) || typeof uid !== "string") return;
  if (typeof bootId !== "string" || typeof createdAt !== "number") return;
  if (userId !== null && typeof userId !== "number") return;
  if (!isObject(process) || !isObject(metadata)) return;
  const { pid, startTime } = process;
  const { labels, annotations } = metadata;
  if (typeof pid !== "number" || typeof startTime !== "string") return;
  if (!isStrings(labels) || !isStrings(annotations)) return;
  return {
    name,
    backend,
    uid,
    process: { pid, startTime },
    bootId,
    userId,
    createdAt,
    metadata: { labels, annotations },
  };
}

/** The metadata with the label that stands for the terminal marker, under the prefix that is used. */
export function withTerminal(metadata: Metadata): Metadata {
  const prefix = prefixOf(metadata);
  if (prefix === undefined) return metadata;
  return { ...metadata, labels: { ...metadata.labels, [`${prefix}/terminal`]: "true" } };
}

/** Prefix of the labels: what stands before `/runner`. */
export function prefixOf(metadata: Metadata): string | undefined {
  const key = Object.keys(metadata.labels).find((label) => label.endsWith("/runner"));
  return key?.slice(0, -"/runner".length);
}

function isStrings(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every((part) => typeof part === "string");
}
