import { AUDIT_RESULTS, RELEASE_TIERS, VM_LABELS } from "../../controller/actions/action_kinds.ts";
import { BACKENDS } from "../../controller/model/ids.ts";
import { type CommandUsage, FLAG_OPTIONS, TEXT_OPTIONS } from "./usage.ts";

/** Shells that completion is made for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** What the first argument of a command may be; nothing where only the server knows. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ["cordon", "drain", "resume", "capacity", "label"].map((name) => [name, BACKENDS]),
  ),
  completion: SHELLS,
};
const VALUES: Readonly<Record<string, readonly string[]>> = {
  tier: RELEASE_TIERS,
  backend: BACKENDS,
  result: AUDIT_RESULTS,
};
const SECOND: Readonly<Record<string, readonly string[]>> = {
  label: [...VM_LABELS, "default"],
  capacity: ["default"],
};

/**
 * A script that completes `gdr-ctl` in a shell: commands, options and the words that are known without
 * the server.
 */
export function completionOf(
  shell: (typeof SHELLS)[number],
  commands: readonly CommandUsage[],
): string {
  switch (shell) {
    case "bash":
      return bash(commands);
    case "zsh":
      // zsh runs bash's completions as they are.
      return `#compdef ${NAME}\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
    case "fish":
      return fish(commands);
    default:
      return shell satisfies never;
  }
}

const NAME = "gdr-ctl";
const options = [...Object.keys(TEXT_OPTIONS), ...Object.keys(FLAG_OPTIONS)];

function bash(commands: readonly CommandUsage[]): string {
  const cases = (words: Readonly<Record<string, readonly string[]>>, prefix = "") =>
    Object.entries(words).map(([key, values]) =>
      `    ${prefix}${key}) words="${values.join(" ")}" ;;`
    );
  return [
    `_gdr_ctl() {`,
    '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words=""',
    '  case "$previous" in',
    ...cases(VALUES, "--"),
    "  esac",
    '  if [ -z "$words" ]; then',
    '    if [[ "$current" == -* ]]; then',
    `      words="${options.map((option) => `--${option}`).join(" ")}"`,
    '    elif [ "$COMP_CWORD" -eq 1 ]; then',
    `      words="${commands.map(({ name }) => name).join(" ")}"`,
    '    elif [ "$COMP_CWORD" -eq 2 ]; then case "${COMP_WORDS[1]}" in',
    ...cases(FIRST),
    "    esac",
    '    elif [ "$COMP_CWORD" -eq 3 ]; then case "${COMP_WORDS[1]}" in',
    ...cases(SECOND),
    "    esac; fi",
    "  fi",
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    "}",
    `complete -F _gdr_ctl ${NAME}`,
    "",
  ].join("\n");
}

function fish(commands: readonly CommandUsage[]): string {
  const quote = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  return [
    `complete -c ${NAME} -f`,
    ...commands.map(({ name, summary }) =>
      `complete -c ${NAME} -n __fish_use_subcommand -a ${name} -d ${quote(summary)}`
    ),
    ...Object.entries(FIRST).map(([command, words]) =>
      `complete -c ${NAME} -n '__fish_seen_subcommand_from ${command}' -a ${quote(words.join(" "))}`
    ),
    ...Object.entries(TEXT_OPTIONS).map(([option, text]) =>
      `complete -c ${NAME} -l ${option} -x -d ${quote(text)}` +
      (VALUES[option] === undefined ? "" : ` -a ${quote(VALUES[option].join(" "))}`)
    ),
    ...Object.entries(FLAG_OPTIONS).map(([option, text]) =>
      `complete -c ${NAME} -l ${option} -d ${quote(text)}`
    ),
    "",
  ].join("\n");
}
