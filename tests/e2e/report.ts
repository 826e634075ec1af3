/** Counts checks and prints each as it ends. */
export interface Report {
  /**
   * Does one check and prints `ok` with the figures it resolves to, or `FAILED` with the reason. Never
   * rejects.
   */
  check(name: string, body: () => Promise<string>): Promise<boolean>;
  /** Does what a check needs beforehand: counted only when it fails. */
  attempt(name: string, body: () => Promise<void>): Promise<boolean>;
  /** Counts a check that is not done, and prints its name. */
  skip(name: string): void;
  /** Prints a line. */
  say(line: string): void;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Makes a {@link Report} that prints through `print`, one line at a time. */
export function createReport(print: (line: string) => void): Report {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  const failure = (name: string, error: unknown) => {
    failed++;
    print(`FAILED  ${name}`);
    const cause = error instanceof Error && error.cause !== undefined ? `\n${error.cause}` : "";
    const text = `${error instanceof Error ? error.message : error}${cause}`;
    for (const line of text.split("\n")) print(`        ${line}`);
  };
  return {
    async check(name, body) {
      const start = performance.now();
      try {
        const figures = await body();
        passed++;
        const seconds = ((performance.now() - start) / 1000).toFixed(1);
        print(`ok      ${name} (${figures}; ${seconds} s)`);
        return true;
      } catch (error) {
        failure(name, error);
        return false;
      }
    },
    async attempt(name, body) {
      try {
        await body();
        return true;
      } catch (error) {
        failure(name, error);
        return false;
      }
    },
    skip(name) {
      skipped++;
      print(`skipped ${name}`);
    },
    say: print,
    get passed() {
      return passed;
    },
    get failed() {
      return failed;
    },
    get skipped() {
      return skipped;
    },
  };
}
