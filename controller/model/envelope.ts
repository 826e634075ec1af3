import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { concatBytes } from "../../lib/bytes.ts";
import { isObject } from "../../lib/json_object.ts";
import type { Secret } from "../../lib/secret.ts";
import { type Task, TaskSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { fromBinary, toBinary } from "../../proto/runtime.ts";
import type { AssignmentInfo } from "./assignment_info.ts";
import { type PlaceOptions, placeTask } from "./assignment.ts";
import { type BackendName, isBackendName, type TaskId, taskIdOf } from "./ids.ts";

/** A task, unpacked, may not be larger than this (bytes): a small message may hold a gzip bomb. */
export const MAX_TASK_BYTES = 64 * 1024 * 1024;
const LABEL = "gdr/envelope/v2";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** What a stored message turned out to be. `detail` is plain text without any of the payload. */
export type Opened =
  | { readonly kind: "readable"; readonly info: AssignmentInfo; readonly task: Task }
  /** Can never be run. `taskId`, where known, is whom to tell at Gitea. */
  | { readonly kind: "invalid"; readonly detail: string; readonly taskId?: TaskId }
  /** Another version of this program, or another key, may be able to read it: never throw it away. */
  | { readonly kind: "unreadable"; readonly detail: string };

/** Packs tasks for JetStream and reads them back. */
export interface EnvelopeCodec {
  /** The envelope of a task, JSON in UTF-8, `task` sealed under the first key. */
  seal(info: AssignmentInfo, task: Task): Promise<Uint8Array>;
  /** Reads an envelope of version 1 or 2. Never throws. */
  open(data: Uint8Array): Promise<Opened>;
}

/**
 * Envelopes of the queue:
 * `{version: 2, id, backend, identity, keyId, nonce, task}`; `task` is base64 of AES-256-GCM over
 * the protobuf (gzip when smaller) and its tag, all other fields are additional data. The key comes
 * from `CAPABILITY_KEY` by HKDF-SHA-256 under a label of its own. Version 1 has `task` unsealed.
 *
 * What is not right is judged so:
 * - no JSON object, no version, another version, another key: unreadable. The version or key that
 *   could read it may come back with a rollback, so nothing is thrown away.
 * - of a known version and key, but damaged, changed, or not what its task says: invalid.
 *
 * A job that says only `self-hosted` keeps the backend that its seal vouches for, so that a changed
 * `DEFAULT_BACKEND` does not make stored jobs invalid. Throws when `keys` is empty.
 */
export function createEnvelopeCodec(
  keys: readonly Secret[],
  options: PlaceOptions,
): EnvelopeCodec {
  const derived = keys.map(deriveKey);
  const [current] = derived;
  if (current === undefined) throw new TypeError("Cannot seal envelopes: no key was given");
  return {
    seal: (info, task) => Promise.try(() => encode(sealTask(info, task, current))),
    open: (data) => Promise.try(() => openEnvelope(data, derived, options)),
  };
}

interface Key {
  readonly id: string;
  readonly bytes: Uint8Array;
}

function deriveKey(secret: Secret): Key {
  const input = new TextEncoder().encode(secret.reveal());
  const derive = (label: string, length: number) =>
    new Uint8Array(
      hkdfSync("sha256", input, new Uint8Array(), new TextEncoder().encode(label), length),
    );
  return { id: derive(`${LABEL}/key-id`, 8).toHex(), bytes: derive(`${LABEL}/key`, 32) };
}

function sealTask(info: AssignmentInfo, task: Task, key: Key): Record<string, unknown> {
  const nonce = randomBytes(NONCE_BYTES);
  const fields = {
    version: 2,
    id: info.id,
    backend: info.backend,
    identity: info.identity.spiffeId,
    keyId: key.id,
    nonce: new Uint8Array(nonce).toBase64(),
  };
  const cipher = createCipheriv("aes-256-gcm", key.bytes, nonce);
  cipher.setAAD(additionalData(fields));
  const sealed = [cipher.update(pack(task)), cipher.final(), cipher.getAuthTag()];
  return { ...fields, task: concatBytes(sealed).toBase64() };
}

function openEnvelope(data: Uint8Array, keys: readonly Key[], options: PlaceOptions): Opened {
  const fields = decode(data);
  if (fields === undefined) return unreadable("the message is not an envelope");
  const { version, id, backend, identity, task } = fields;
  if (version !== 1 && version !== 2) {
    return unreadable(`envelope version ${show(version)} is not known to this release`);
  }
  let key: Key | undefined;
  if (version === 2) {
    key = keys.find((each) => each.id === fields.keyId);
    if (key === undefined) return unreadable(`envelope key ${show(fields.keyId)} is not known`);
  }
  const claimed = typeof id === "string" ? taskIdOf(id) : undefined;
  const invalid = (detail: string, taskId = claimed): Opened =>
    taskId === undefined ? { kind: "invalid", detail } : { kind: "invalid", detail, taskId };
  if (claimed === undefined) return invalid("the envelope's id is not that of a task");
  if (!isBackendName(backend)) return invalid("the envelope's backend is neither pod nor vm");
  if (typeof identity !== "string") return invalid("the envelope names no identity");
  const bytes = base64(task);
  if (bytes === undefined) return invalid("the envelope's task is not base64");
  const packed = key === undefined ? bytes : unseal(fields, bytes, key);
  if (packed === undefined) {
    return invalid("the envelope's seal is broken: it was changed or damaged");
  }
  const opened = unpack(packed);
  if (opened === undefined) return invalid("the envelope's task cannot be decoded");
  return check(opened, { id, backend, identity, sealed: key !== undefined }, options);
}

interface Stated {
  readonly id: unknown;
  readonly backend: BackendName;
  readonly identity: string;
  readonly sealed: boolean;
}

/** Backend and identity are derived again; the envelope must say the same. */
function check(task: Task, stated: Stated, options: PlaceOptions): Opened {
  const defaultBackend = stated.sealed ? stated.backend : options.defaultBackend;
  const placed = placeTask(task, { ...options, defaultBackend });
  if (placed.kind === "permanent") {
    const { detail, taskId } = placed;
    return taskId === null ? { kind: "invalid", detail } : { kind: "invalid", detail, taskId };
  }
  const { info } = placed;
  const differs = (field: string): Opened => ({
    kind: "invalid",
    detail: `the envelope's ${field} is not that of its task`,
    taskId: info.taskId,
  });
  if (stated.id !== info.id) return differs("id");
  if (stated.backend !== info.backend) return differs("backend");
  if (stated.identity !== info.identity.spiffeId) return differs("identity");
  return { kind: "readable", info, task };
}

function unseal(
  fields: Readonly<Record<string, unknown>>,
  sealed: Uint8Array,
  key: Key,
): Uint8Array | undefined {
  const nonce = base64(fields.nonce);
  if (nonce?.length !== NONCE_BYTES || sealed.length < TAG_BYTES) return undefined;
  const { task: _sealed, ...others } = fields;
  try {
    const cipher = createDecipheriv("aes-256-gcm", key.bytes, nonce);
    cipher.setAAD(additionalData(others));
    cipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    return concatBytes([cipher.update(sealed.subarray(0, -TAG_BYTES)), cipher.final()]);
  } catch {
    return undefined;
  }
}

/** Every field but the task, sorted by name: the same bytes whatever order JSON came in. */
function additionalData(fields: Readonly<Record<string, unknown>>): Uint8Array {
  const sorted = Object.entries(fields).sort(([a], [b]) => a < b ? -1 : 1);
  return new TextEncoder().encode(`${LABEL}\n${JSON.stringify(sorted)}`);
}

function pack(task: Task): Uint8Array {
  const plain = toBinary(TaskSchema, task);
  const zipped = gzipSync(plain);
  return zipped.length < plain.length ? new Uint8Array(zipped) : plain;
}

function unpack(packed: Uint8Array): Task | undefined {
  try {
    // Gzip's first byte cannot start a protobuf message: 0x1f would be wire type 7.
    const plain = packed[0] === 0x1f && packed[1] === 0x8b
      ? gunzipSync(packed, { maxOutputLength: MAX_TASK_BYTES })
      : packed;
    return fromBinary(TaskSchema, new Uint8Array(plain));
  } catch {
    return undefined;
  }
}

function encode(fields: Readonly<Record<string, unknown>>): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(fields));
}

function decode(data: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function base64(value: unknown): Uint8Array | undefined {
  if (typeof value !== "string") return undefined;
  try {
    return Uint8Array.fromBase64(value, { lastChunkHandling: "strict" });
  } catch {
    return undefined;
  }
}

function unreadable(detail: string): Opened {
  return { kind: "unreadable", detail };
}

function show(value: unknown): string {
  return value === undefined ? "(none)" : (JSON.stringify(value) ?? "(none)").slice(0, 40);
}
