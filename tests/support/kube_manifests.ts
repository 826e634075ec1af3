import { parseAllDocuments } from "yaml";
import { isObject, objectOrEmpty } from "../../lib/json_object.ts";

/** A Kubernetes object as a manifest states it. */
export type Manifest = Readonly<Record<string, unknown>>;

/** Folder of the manifests, with a trailing slash. */
export const MANIFESTS = new URL("../../deploy/kubernetes/", import.meta.url).pathname;

/** All objects of a manifest file; `name` is relative to the folder of the manifests. */
export async function readManifests(name: string): Promise<Manifest[]> {
  const documents = parseAllDocuments(await Deno.readTextFile(MANIFESTS + name));
  return documents.map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new Error(`Read "${name}"`, { cause: error });
    const value: unknown = document.toJS();
    if (!isObject(value)) throw new Error(`Read "${name}": a document is no object`);
    return value;
  });
}

/** The one object of that kind and name. */
export async function readManifest(
  file: string,
  which: { readonly kind: string; readonly name: string },
): Promise<Manifest> {
  const found = (await readManifests(file)).find((one) =>
    one.kind === which.kind && objectOrEmpty(one.metadata).name === which.name
  );
  if (found === undefined) throw new Error(`Read "${file}": no ${which.kind} "${which.name}"`);
  return found;
}

/** The value at a path of keys and indexes; undefined where there is none. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((here, key) => {
    if (Array.isArray(here)) return typeof key === "number" ? here[key] : undefined;
    return isObject(here) ? here[key] : undefined;
  }, value);
}

/** The value at a path as a list; empty where there is none. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}
