import type { Metadata } from "../../controller/backend.ts";
import {
  assignmentIdOf,
  type ExecutorName,
  executorName,
  type Instance,
  parseAssignmentId,
  parseTaskId,
  type TaskId,
  taskIdOf,
} from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import { decodeAnnotations, type Decoded, encodeAnnotations, isChunkKey } from "./annotations.ts";
import type { Sandbox } from "./sandboxes.ts";

/** Metadata of a sandbox: all that there is to keep notes in. */
export type SandboxMetadata = Readonly<Record<string, string>>;

/** What stands in sandboxes' metadata under the keys of one prefix. Reading never throws. */
export interface MetadataCodec {
  /** What every sandbox of this backend has, whichever instance made it. */
  readonly oursSelector: SandboxMetadata;
  /** Says to whoever gives identities that a sandbox may have its own (ADR 0031). */
  readonly bound: SandboxMetadata;
  /** Says that its job has come to its end. */
  readonly terminal: SandboxMetadata;
  /** What a new sandbox gets. Throws a `RangeError` for annotations that no metadata can hold. */
  encode(metadata: Metadata): SandboxMetadata;
  /** What all sandboxes of that name have; undefined for one that is named by its id. */
  selectorOf(name: string): SandboxMetadata | undefined;
  /**
   * Name of the executor that a sandbox is, from whose it says to be; its id when it does not say, so
   * that it can be shown.
   */
  nameOf(sandbox: Sandbox): ExecutorName;
  isOf(sandbox: Sandbox, instance: Instance): boolean;
  /** The task that it says to be for. */
  taskOf(sandbox: Sandbox): TaskId | undefined;
  isBound(sandbox: Sandbox): boolean;
  isTerminal(sandbox: Sandbox): boolean;
  labelsOf(sandbox: Sandbox): Readonly<Record<string, string>>;
  annotationsOf(sandbox: Sandbox): Decoded;
  /** What proves whose it is; undefined when there is none that can be read. */
  signatureOf(sandbox: Sandbox): string | undefined;
}

const INSTANCE = /^[0-9a-z]{1,40}$/;
const NAME = /^ci-([0-9a-z]{1,40})-([1-9][0-9]{0,18})$/;

/** Makes a {@link MetadataCodec}. */
export function createMetadataCodec(prefix: string): MetadataCodec {
  const { labels, annotations } = metadataKeys(prefix);
  const identity = `${prefix}/identity`;
  const oursSelector = { [labels.backend]: "vm" };
  const has = ({ metadata }: Sandbox, wanted: SandboxMetadata) =>
    Object.entries(wanted).every(([key, value]) => metadata[key] === value);
  const bound = { [identity]: "bound" };
  const terminal = { [labels.terminal]: "true" };
  const annotationsOf = ({ metadata }: Sandbox) => decodeAnnotations(metadata, prefix);
  return {
    oursSelector,
    bound,
    terminal,
    encode: (metadata) => ({
      ...metadata.labels,
      ...encodeAnnotations(metadata.annotations, prefix),
    }),
    selectorOf(name) {
      const [, instance, task = ""] = NAME.exec(name) ?? [];
      const taskId = parseTaskId(task);
      if (instance === undefined || taskId === undefined) return undefined;
      return {
        ...oursSelector,
        [labels.instance]: instance,
        [labels.assignmentId]: assignmentIdOf(taskId),
      };
    },
    nameOf({ id, metadata }) {
      const instance = metadata[labels.instance] ?? "";
      const assignment = parseAssignmentId(metadata[labels.assignmentId] ?? "");
      return INSTANCE.test(instance) && assignment !== undefined
        ? executorName(instance as Instance, assignment)
        : id as ExecutorName;
    },
    isOf: ({ metadata }, instance) => metadata[labels.instance] === instance,
    taskOf: ({ metadata }) => taskIdOf(metadata[labels.assignmentId] ?? ""),
    isBound: (sandbox) => has(sandbox, bound),
    isTerminal: (sandbox) => has(sandbox, terminal),
    labelsOf({ metadata }) {
      const own = Object.entries(metadata).filter(([key]) =>
        key.startsWith(`${prefix}/`) && !isChunkKey(key, prefix) && key !== identity
      );
      return Object.fromEntries(own);
    },
    annotationsOf,
    signatureOf(sandbox) {
      const decoded = annotationsOf(sandbox);
      return decoded.kind === "decoded" ? decoded.annotations[annotations.signature] : undefined;
    },
  };
}
