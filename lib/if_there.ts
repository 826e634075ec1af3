/** The file's text; undefined when there is none. */
export function readIfThere(path: string): Promise<string | undefined> {
  return ifThere(() => Deno.readTextFile(path));
}

/** What stands there, links not followed; undefined when nothing does. */
export function statIfThere(path: string): Promise<Deno.FileInfo | undefined> {
  return ifThere(() => Deno.lstat(path));
}

/** Removes what stands there, `recursive` with all that is in it. Absent is success. */
export async function removeIfThere(path: string, options?: Deno.RemoveOptions): Promise<void> {
  await ifThere(() => Deno.remove(path, options));
}

async function ifThere<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return;
    throw error;
  }
}
