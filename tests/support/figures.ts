/**
 * Tells a line of measured figures: to the file that `FIGURES_FILE` names, because some reporters show
 * nothing that a test prints, else to stderr.
 */
export function tellFigures(line: string): void {
  const file = Deno.env.get("FIGURES_FILE") ?? "/dev/stderr";
  Deno.writeTextFileSync(file, `${line}\n`, { append: true });
}
