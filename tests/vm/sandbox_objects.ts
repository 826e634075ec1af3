import { isObject, objectOrEmpty } from "../../lib/json_object.ts";
import { at, listAt } from "../support/kube_manifests.ts";
import type { Peers } from "../support/peers.ts";

/** A `BatchSandbox` as the platform's operator sees it. */
export interface SandboxObject {
  /** Also the sandbox's id. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** It has a Pod of the pool, and what it runs may be started. */
  readonly allocated: boolean;
  /** As the server stored it. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The objects behind the sandboxes of a real opensandbox-server, and what an operator says of them. */
export interface SandboxObjects {
  list(): Promise<SandboxObject[]>;
  /** The program in it has ended. */
  ended(name: string, how: "ok" | "fail"): Promise<void>;
}

const KIND = "sandbox.opensandbox.io/v1alpha1/opensandbox/batchsandboxes";

/** On the stand-in of an API server, whose port is the one after the server's. */
export function openSandboxObjects({ opensandbox }: Pick<Peers, "opensandbox">): SandboxObjects {
  const url = new URL(opensandbox.url);
  url.port = String(Number(url.port) + 1);
  const asked = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${url.origin}/stub/${path}`, {
      ...init,
      signal: AbortSignal.timeout(10_000),
    });
    return { ok: response.ok, text: await response.text() };
  };
  return {
    async list() {
      const { text } = await asked("dump");
      const dump: unknown = JSON.parse(text);
      return listAt(dump, "objects", KIND).map(sandboxObject);
    },
    async ended(name, how) {
      // 404: deleted meanwhile, which is what it was told for.
      await asked(`finish/${name}?result=${how}`, { method: "POST" });
    },
  };
}

/** Reads a `BatchSandbox` of an API server. Throws nothing: what is missing is empty. */
export function sandboxObject(object: unknown): SandboxObject {
  const program = at(object, "spec", "taskTemplate", "spec", "process");
  const pairs = listAt(program, "env").filter(isObject);
  const labels = Object.entries(objectOrEmpty(at(object, "metadata", "labels")));
  return {
    name: String(at(object, "metadata", "name")),
    labels: Object.fromEntries(labels.map(([key, value]) => [key, String(value)])),
    allocated: at(object, "status", "taskRunning") === 1,
    command: listAt(program, "command").map(String),
    environment: Object.fromEntries(pairs.map(({ name, value }) => [String(name), String(value)])),
  };
}
