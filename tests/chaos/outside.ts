/** Files of one job, outside of everything under test. */
export interface OutsideFiles {
  readonly file: string;
  /** Every line that it wrote: `begin` when it began, `end` when it ended. */
  lines(): Promise<readonly string[]>;
}

/** Where jobs of one world write; every user may. */
export interface Outside {
  open(): Promise<OutsideFiles>;
}

/** Makes an {@link Outside} in a new folder below `parent`. */
export async function openOutside(parent: string): Promise<Outside> {
  const folder = `${parent}/outside`;
  await Deno.mkdir(folder);
  await Deno.chmod(folder, 0o755);
  let count = 0;
  return {
    async open() {
      const file = `${folder}/job-${++count}`;
      await Deno.writeTextFile(file, "");
      await Deno.chmod(file, 0o666);
      const lines = async () =>
        (await Deno.readTextFile(file)).split("\n").filter((line) => line !== "");
      return { file, lines };
    },
  };
}

/**
 * The steps as a real runner does them; the light runner (`light_job.ts`) does the same without a
 * shell. `$$` tells two that would do the same job apart.
 */
export const STEPS = [
  'echo "begin" >>"$FILE"; for i in $(seq 1 $((ROWS / 2))); do echo "row $i"; done',
  'sleep "$SECONDS_LONG"',
  'for i in $(seq $((ROWS / 2 + 1)) $ROWS); do echo "row $i"; done; echo end >>"$FILE"; exit "$CODE"',
] as const;
