import type { Logger } from "../lib/logger.ts";

const MAX_LINE = 4096;

/** Makes a log record of each line that the runner prints, until the stream ends. Never rejects. */
export async function logLines(stream: ReadableStream<Uint8Array>, logger: Logger): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const part of stream) {
      const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE);
      for (const line of lines) say(line, logger);
    }
  } catch (error) {
    // Nobody waits for this before the runner's end: a rejection would end the gate.
    logger.warn("what the runner prints cannot be read", { error });
  }
  say(rest, logger);
}

// deno-lint-ignore no-control-regex -- colours are made of control characters
const COLOURS = /\x1b\[[0-9;]*m/g;

function say(line: string, logger: Logger): void {
  const text = line.replace(COLOURS, "").trim();
  if (text !== "") logger.info("runner says", { line: text.slice(0, MAX_LINE) });
}
