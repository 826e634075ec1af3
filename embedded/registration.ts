import { join } from "node:path";
import { objectOrEmpty } from "../lib/json_object.ts";
import { Secret } from "../lib/secret.ts";
import { readIfThere } from "../lib/if_there.ts";
import { replaceFile } from "../lib/replace_file.ts";
import { StateError } from "./state_directory.ts";

/** A permanent registration at Gitea. */
export interface KeptRegistration {
  readonly uuid: string;
  readonly token: Secret;
}

/**
 * The registration that is kept in `<directory>/registration.json` (mode 0600) for the Gitea at
 * `url`, or a new one from `make`, written before it is used. Throws {@link StateError} when there is
 * none and none can be made, with the way out.
 */
export async function keepRegistration(
  directory: string,
  options: { readonly url: string; readonly make?: () => Promise<KeptRegistration> },
): Promise<KeptRegistration> {
  const { url, make } = options;
  const file = join(directory, "registration.json");
  const kept = parse(await readIfThere(file) ?? "null");
  if (kept !== undefined && kept.url === url) {
    return { uuid: kept.uuid, token: new Secret(kept.token) };
  }
  if (make === undefined) {
    throw new StateError(
      `Find the registration at "${url}": GITEA_RUNNER_UUID and GITEA_RUNNER_TOKEN are not set; ` +
        'run "deno task register", which makes them and says how to go on',
    );
  }
  const { uuid, token } = await make();
  await replaceFile(file, JSON.stringify({ url, uuid, token: token.reveal() }));
  return { uuid, token };
}

function parse(text: string): { url: string; uuid: string; token: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // A torn file is as good as none: a registration can be made again.
  }
  const { url, uuid, token } = objectOrEmpty(value);
  return typeof url === "string" && typeof uuid === "string" && typeof token === "string"
    ? { url, uuid, token }
    : undefined;
}
