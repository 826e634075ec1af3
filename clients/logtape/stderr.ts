const PATIENCE_MS = 1000;
const encoder = new TextEncoder();

/**
 * Writes all of `line` to stderr before it returns, so that nothing is lost at an exit. A reader that
 * takes nothing for a second, or has gone, costs the line: a log must never stop the program.
 */
export function writeStderr(line: string): void {
  const bytes = encoder.encode(line);
  const end = performance.now() + PATIENCE_MS;
  for (let at = 0; at < bytes.length;) {
    try {
      at += Deno.stderr.writeSync(bytes.subarray(at));
    } catch (error) {
      if (!(error instanceof Deno.errors.WouldBlock) || performance.now() > end) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
