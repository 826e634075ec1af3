import { stop } from "esbuild";

let users = 0;

/**
 * Runs `use`, which may call esbuild. esbuild's child process is shared by the whole program: it is
 * ended, and awaited, when its last user is done.
 */
export async function withEsbuild<T>(use: () => Promise<T>): Promise<T> {
  users++;
  try {
    return await use();
  } finally {
    users--;
    if (users === 0) await stop();
  }
}
