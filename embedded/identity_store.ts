import { objectOrEmpty } from "../lib/json_object.ts";

/** One who may have an identity: an executor, or this program's own facade. */
export interface StoredIdentity {
  /** Executor name, or the SPIFFE ID for the facade. */
  readonly name: string;
  readonly socket: string;
  /** Unix user that may use the socket; null = ours. */
  readonly userId: number | null;
  /** Null until it is bound. */
  readonly spiffeId: string | null;
}

/** Identities that survive a restart, in one file of mode 0600. */
export interface IdentityStore {
  load(): Promise<StoredIdentity[]>;
  /** Replaces the file; calls are done in order, and the last one wins. */
  save(identities: readonly StoredIdentity[]): Promise<void>;
}

/** The store in that file. A file that cannot be read is an `Error` that names it. */
export function createIdentityStore(path: string): IdentityStore {
  let last: Promise<void> = Promise.resolve();
  return {
    async load() {
      const text = await readIfThere(path);
      if (text === undefined) return [];
      try {
        const { identities } = objectOrEmpty(JSON.parse(text));
        if (!Array.isArray(identities)) throw shape();
        return identities.map(parse);
      } catch (error) {
        throw new Error(
          `Read identities "${path}": the file is damaged: remove it, running executors lose theirs`,
          { cause: error },
        );
      }
    },
    save(identities) {
      const text = JSON.stringify({ version: 1, identities });
      const write = async () => {
        await replaceFile(path, text);
      };
      last = last.then(write, write);
      return last;
    },
  };
}

/** Writes a file of mode 0600 so that a crash leaves either the old or the new content. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  const file = await Deno.open(draft, { write: true, create: true, truncate: true, mode: 0o600 });
  try {
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync();
  } finally {
    file.close();
  }
  await Deno.chmod(draft, 0o600);
  await Deno.rename(draft, path);
}

/** The file's text; `undefined` when there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function parse(value: unknown): StoredIdentity {
  const { name, socket, userId, spiffeId } = objectOrEmpty(value);
  if (typeof name !== "string" || typeof socket !== "string") throw shape();
  if (typeof userId !== "number" && userId !== null) throw shape();
  if (typeof spiffeId !== "string" && spiffeId !== null) throw shape();
  return { name, socket, userId, spiffeId };
}

function shape(): Error {
  return new Error("Read identities: it has another shape");
}
