import { objectOrEmpty } from "../lib/json_object.ts";
import { readIfThere } from "../lib/if_there.ts";
import { replaceFile } from "../lib/replace_file.ts";

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
      const write = () => replaceFile(path, text);
      last = last.then(write, write);
      return last;
    },
  };
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
