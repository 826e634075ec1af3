import type { Sandbox } from "../../backends/vm/sandboxes.ts";
import { isObject, objectOrEmpty } from "../../lib/json_object.ts";

/** One page of a list. */
export interface Page {
  readonly sandboxes: readonly Sandbox[];
  /** How many there are on all pages. */
  readonly total: number;
  readonly hasNext: boolean;
}

/** What is known of the server that has answered. */
export interface Reading {
  /** How far its clock is ahead of ours, milliseconds. */
  readonly aheadMs: number;
  /** Takes the API key out of words. */
  hide(text: string): string;
}

/** Reads a sandbox; undefined without an id. What else has another form than expected is left out. */
export function sandboxOf(value: unknown, { aheadMs, hide }: Reading): Sandbox | undefined {
  const sandbox = objectOrEmpty(value);
  const { id } = sandbox;
  if (typeof id !== "string" || id === "") return undefined;
  const status = objectOrEmpty(sandbox.status);
  const expiresAt = time(sandbox.expiresAt);
  return {
    id,
    state: text(status.state),
    reason: text(status.reason),
    message: hide(text(status.message)),
    metadata: texts(sandbox.metadata),
    createdAt: time(sandbox.createdAt) ?? 0,
    expiresAt: expiresAt === null ? null : expiresAt - aheadMs,
  };
}

/** Reads a page; undefined for anything that is none. */
export function pageOf(value: unknown, reading: Reading): Page | undefined {
  const { items, pagination } = objectOrEmpty(value);
  if (!Array.isArray(items) || !isObject(pagination)) return undefined;
  const { totalItems, hasNextPage } = pagination;
  if (typeof totalItems !== "number" || typeof hasNextPage !== "boolean") return undefined;
  const sandboxes = items.map((item) => sandboxOf(item, reading));
  // One without an id would be missing: a list must be complete.
  if (!sandboxes.every((sandbox) => sandbox !== undefined)) return undefined;
  return { sandboxes, total: totalItems, hasNext: hasNextPage };
}

function texts(value: unknown): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [key, each] of Object.entries(objectOrEmpty(value))) {
    if (typeof each === "string") found[key] = each;
  }
  return found;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function time(value: unknown): number | null {
  const at = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(at) ? null : at;
}
