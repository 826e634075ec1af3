import { isObject, objectOrEmpty } from "../../lib/json_object.ts";
import { Secret } from "../../lib/secret.ts";
import { type Material, type ReadMaterial, readText, tokenOf } from "./material.ts";

type Parts = Readonly<Record<string, unknown>>;

/**
 * The current context of a kubeconfig file. Certificates, keys and tokens may be inside or in files of
 * their own; relative paths are relative to the kubeconfig's folder. `tokenFile` wins over `token`, as
 * in client-go. `parseYaml` may throw.
 *
 * Refused, because they would be left out silently: plugins (`exec`, `auth-provider`), passwords,
 * impersonation, `insecure-skip-tls-verify` and `tls-server-name`.
 */
export function kubeconfigReader(
  path: string,
  parseYaml: (text: string) => unknown,
): ReadMaterial {
  const wrong = (what: string) => new Error(`Read the kubeconfig "${path}": ${what}`);
  return async () => {
    const text = await readText(path);
    let config: Parts;
    try {
      config = objectOrEmpty(parseYaml(text));
    } catch {
      throw wrong("it is no YAML"); // The parser's message quotes the text, secrets included.
    }
    const context = named(config.contexts, config["current-context"], "context");
    if (context === null) throw wrong("its current-context is none of its contexts");
    const cluster = named(config.clusters, context.cluster, "cluster");
    if (cluster === null) throw wrong("the cluster of its current context is none of its clusters");
    const user = named(config.users, context.user, "user");
    if (user === null) throw wrong("the user of its current context is none of its users");
    const refused = [
      ...["insecure-skip-tls-verify", "tls-server-name"].filter((key) => isSet(cluster[key])),
      ...["exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups"]
        .filter((key) => isSet(user[key])),
    ];
    if (refused.length > 0) {
      throw wrong(
        `${
          refused.join(", ")
        } is not supported: use certificate-authority, and token, tokenFile or a client certificate`,
      );
    }
    if (typeof cluster.server !== "string" || !/^https?:\/\//.test(cluster.server)) {
      throw wrong("its cluster has no server of the form https://host:port");
    }
    const file = partReader(path.slice(0, path.lastIndexOf("/") + 1) || "./", wrong);
    return {
      server: cluster.server.replace(/\/+$/, ""),
      ca: await file(cluster, "certificate-authority"),
      certificate: await certificateOf(user, file, wrong),
      token: await userToken(user, file, path),
      proxy: typeof cluster["proxy-url"] === "string" ? cluster["proxy-url"] : null,
    };
  };
}

type PartReader = (parts: Parts, key: string) => Promise<string | null>;

/** Reads `<key>-data` (base64), or the file that `<key>` names; null when there is neither. */
function partReader(folder: string, wrong: (what: string) => Error): PartReader {
  return async (parts, key) => {
    const data = parts[`${key}-data`];
    if (typeof data === "string" && data !== "") {
      try {
        return new TextDecoder().decode(Uint8Array.fromBase64(data));
      } catch {
        throw wrong(`${key}-data is no base64`);
      }
    }
    const name = parts[key];
    if (typeof name !== "string" || name === "") return null;
    return await readText(name.startsWith("/") ? name : folder + name);
  };
}

async function certificateOf(
  user: Parts,
  file: PartReader,
  wrong: (what: string) => Error,
): Promise<Material["certificate"]> {
  const cert = await file(user, "client-certificate");
  const key = await file(user, "client-key");
  if ((cert === null) !== (key === null)) {
    throw wrong("client-certificate and client-key belong together: one is missing");
  }
  return cert === null || key === null ? null : { cert, key: new Secret(key) };
}

async function userToken(user: Parts, file: PartReader, path: string): Promise<Secret | null> {
  const text = await file(user, "tokenFile");
  if (text !== null) return tokenOf(text, String(user.tokenFile));
  return typeof user.token === "string" && user.token !== "" ? tokenOf(user.token, path) : null;
}

function named(list: unknown, name: unknown, part: string): Parts | null {
  if (!Array.isArray(list) || typeof name !== "string") return null;
  const found = list.find((entry) => isObject(entry) && entry.name === name);
  return found === undefined ? null : objectOrEmpty(objectOrEmpty(found)[part]);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== "";
}
