import type { KubernetesAccess } from "../../controller/config/config.ts";
import { Secret } from "../../lib/secret.ts";

/** What it takes to speak with an API server, at one moment. */
export interface Material {
  /** Base URL without trailing slash. */
  readonly server: string;
  /** PEM; null = the machine's own trust. */
  readonly ca: string | null;
  /** Client certificate and key, PEM. */
  readonly certificate: { readonly cert: string; readonly key: Secret } | null;
  readonly token: Secret | null;
  /** HTTP proxy on the way; null = as the environment says. */
  readonly proxy: string | null;
}

/** Reads {@link Material}; rejects with an `Error` that names the file and what is wrong with it. */
export type ReadMaterial = () => Promise<Material>;

/** The service account that every Pod has mounted. */
export function serviceAccountReader(
  { host, port, directory }: Extract<KubernetesAccess, { kind: "service_account" }>,
): ReadMaterial {
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return async () => ({
    server,
    ca: await readText(`${directory}/ca.crt`),
    certificate: null,
    token: tokenOf(await readText(`${directory}/token`), `${directory}/token`),
    proxy: null,
  });
}

/** Reads a text file that must not be empty. */
export async function readText(path: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    const why = error instanceof Error ? error.name : "unknown error";
    throw new Error(`Read "${path}" for the API server: ${why}`, { cause: error });
  }
  if (text.trim() === "") throw new Error(`Read "${path}" for the API server: it is empty`);
  return text;
}

/** A bearer token; what no header can carry is refused without being shown. */
export function tokenOf(text: string, where: string): Secret {
  const token = text.trim();
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new Error(`Read the token in "${where}": it is no single word of printable characters`);
  }
  return new Secret(token);
}

/** True when both lead to the same connections: server, trust, client certificate, proxy. */
export function sameConnection(a: Material, b: Material): boolean {
  return a.server === b.server && a.ca === b.ca && a.proxy === b.proxy &&
    a.certificate?.cert === b.certificate?.cert &&
    a.certificate?.key.reveal() === b.certificate?.key.reveal();
}

/** True when nothing differs. */
export function sameMaterial(a: Material, b: Material): boolean {
  return sameConnection(a, b) && a.token?.reveal() === b.token?.reveal();
}
