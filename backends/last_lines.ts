const LINES = 20;
const LINE_LENGTH = 400;
const CONTROLS = /\p{Cc}/gu;
const COLOURS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, "g");

/** The last lines of what an executor printed, for people: bounded, without control characters. */
export function lastLinesOf(output: string): string[] {
  return output.split("\n")
    .map((line) => line.replace(COLOURS, "").replace(CONTROLS, " ").slice(0, LINE_LENGTH).trimEnd())
    .filter((line) => line !== "").slice(-LINES);
}
