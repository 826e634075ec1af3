/** Root of the repository, with a trailing slash. */
export const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** Reads a file of the repository as text; throws what Deno throws when it is not there. */
export function read(path: string): string {
  return Deno.readTextFileSync(ROOT + path);
}

/** Files that git tracks and that are there, as paths from the root. Throws without git or a clone. */
export function trackedFiles(): string[] {
  const { success, stdout, stderr } = new Deno.Command("git", {
    args: ["ls-files", "-z"],
    cwd: ROOT,
  }).outputSync();
  if (!success) {
    throw new Error(`List tracked files with git: ${new TextDecoder().decode(stderr).trim()}`);
  }
  return new TextDecoder().decode(stdout).split("\0").filter((path) => path !== "" && isFile(path));
}

function isFile(path: string): boolean {
  try {
    return Deno.lstatSync(ROOT + path).isFile;
  } catch (error) {
    // Deleted but not yet committed.
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Our own source: TypeScript and styles, without what is generated. */
export function sourceFiles(): string[] {
  return trackedFiles().filter((path) => /\.(tsx?|css|sh)$/.test(path) && !isGenerated(path));
}

/** True for what a tool writes. */
export function isGenerated(path: string): boolean {
  return path.startsWith("proto/gen/") || path === "deno.lock";
}
