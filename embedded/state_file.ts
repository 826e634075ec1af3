/** Writes a file of mode 0600 so that a crash leaves either the old or the new content. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  {
    using file = await Deno.open(draft, { write: true, create: true, truncate: true, mode: 0o600 });
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync();
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
