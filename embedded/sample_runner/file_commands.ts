/**
 * Reads what a step wrote to `GITHUB_OUTPUT` or `GITHUB_ENV`: `name=value` lines, and
 * `name<<DELIMITER` blocks that end with the delimiter on a line of its own. Other lines are ignored.
 */
export function readOutputs(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? "";
    const block = /^([^=<]+)<<(.+)$/.exec(line);
    if (block !== null) {
      const end = lines.indexOf(block[2] ?? "", i + 1);
      const until = end < 0 ? lines.length : end;
      values[block[1] ?? ""] = lines.slice(i + 1, until).join("\n");
      i = until;
      continue;
    }
    const at = line.indexOf("=");
    if (at > 0) values[line.slice(0, at)] = line.slice(at + 1);
  }
  return values;
}
