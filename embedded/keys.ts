import { writeAll } from "../lib/replace_file.ts";
import { Secret } from "../lib/secret.ts";
import { refuseWide, StateError } from "./state_directory.ts";

const KEY_BYTES = 32;

/**
 * A secret of this machine that is made once, 256 random bits in base64url, and kept in
 * `<directory>/<name>` with mode 0600. Two processes that start at once get the same one. `directory`
 * comes from {@link openStateDirectory}. Throws {@link StateError} when the file is open to others or
 * holds something else.
 */
export async function keepKey(
  directory: string,
  options: { readonly name: string; readonly random?: (bytes: Uint8Array<ArrayBuffer>) => void },
): Promise<Secret> {
  const { name, random = (bytes) => void crypto.getRandomValues(bytes) } = options;
  const path = `${directory}/${name}`;
  const kept = await readKey(path);
  if (kept !== undefined) return kept;
  const bytes = new Uint8Array(KEY_BYTES);
  random(bytes);
  const text = bytes.toBase64({ alphabet: "base64url", omitPadding: true });
  await writeOnce(path, text);
  const written = await readKey(path);
  if (written === undefined) throw new StateError(`Keep "${path}": it vanished at once`);
  return written;
}

async function readKey(path: string): Promise<Secret | undefined> {
  try {
    const text = (await Deno.readTextFile(path)).trim();
    await refuseWide(path, "600");
    if (!/^[\x21-\x7e]{32,1024}$/.test(text)) {
      throw new StateError(
        `Use "${path}": it is no key of ours; remove it to have a new one made (stored jobs sealed with the old one are lost)`,
      );
    }
    return new Secret(text);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Whole or not at all, and never over another one. */
async function writeOnce(path: string, text: string): Promise<void> {
  const draft = `${path}.${crypto.randomUUID()}`;
  try {
    {
      using file = await Deno.open(draft, { write: true, createNew: true, mode: 0o600 });
      await writeAll(file, `${text}\n`);
      await file.sync();
    }
    await Deno.link(draft, path);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  } finally {
    await Deno.remove(draft).catch(() => {});
  }
}
