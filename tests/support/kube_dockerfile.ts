/** One instruction of a Dockerfile: its keyword in upper case, and its words or JSON list. */
export interface Instruction {
  readonly keyword: string;
  /** The rest of the line, continuation lines joined. */
  readonly text: string;
  /** `--name=value` flags before it. */
  readonly flags: Readonly<Record<string, string>>;
}

/** What an image says about how it is run. */
export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  /** As in `USER`. */
  readonly user: string;
}

/** Reads the instructions of a Dockerfile; comments are left out. */
export function parseDockerfile(text: string): Instruction[] {
  const joined = text.split("\n").filter((line) => !/^\s*#/.test(line)).join("\n")
    .replace(/\\\n\s*/g, " ");
  return joined.split("\n").flatMap((line) => {
    const [, keyword = "", rest = ""] = /^([A-Za-z]+)\s+(.*)$/.exec(line.trim()) ?? [];
    if (keyword === "") return [];
    const flags: Record<string, string> = {};
    let left = rest;
    for (let found; (found = /^--([a-z-]+)=(\S+)\s+/.exec(left)) !== null;) {
      flags[found[1] ?? ""] = found[2] ?? "";
      left = left.slice(found[0].length);
    }
    return [{ keyword: keyword.toUpperCase(), text: left, flags }];
  });
}

/** Instructions of the last stage: what the image is. */
export function lastStage(instructions: readonly Instruction[]): Instruction[] {
  return instructions.slice(instructions.findLastIndex((one) => one.keyword === "FROM"));
}

/** How the image of the last stage is run. */
export function imageConfig(instructions: readonly Instruction[]): ImageConfig {
  const stage = lastStage(instructions);
  const last = (keyword: string) => stage.findLast((one) => one.keyword === keyword)?.text ?? "";
  const environment: Record<string, string> = {};
  for (const { text } of stage.filter((one) => one.keyword === "ENV")) {
    for (const [, name = "", value = ""] of text.matchAll(/([A-Z0-9_]+)=(\S+)/g)) {
      environment[name] = value;
    }
  }
  return {
    entrypoint: JSON.parse(last("ENTRYPOINT")) as string[],
    environment,
    workingDirectory: last("WORKDIR") || "/",
    user: last("USER"),
  };
}
