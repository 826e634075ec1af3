/** Writes a file of mode 0600 so that a crash leaves either the old or the new content. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  {
    using file = await Deno.open(draft, { write: true, create: true, truncate: true, mode: 0o600 });
    await writeAll(file, text);
    await file.sync();
  }
  await Deno.chmod(draft, 0o600);
  await Deno.rename(draft, path);
}

/** As {@link replaceFile}; what was written survives a power failure, too, once this resolves. */
export async function replaceFileDurably(path: string, text: string): Promise<void> {
  await replaceFile(path, text);
  using directory = await Deno.open(path.slice(0, path.lastIndexOf("/")));
  await directory.sync();
}

/** Writes all of the text, however little the system takes at once. */
export async function writeAll(file: Deno.FsFile, text: string): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
}
