import assert from "node:assert/strict";
import type { Config } from "../../controller/config/config.ts";
import { type Env, faults, ok } from "./config_env.ts";

/** Variable, refused values, accepted values with what becomes of them. */
export interface ConfigRow {
  readonly name: string;
  /** What else is set. */
  readonly env?: Env;
  readonly refused: readonly string[];
  readonly accepted: readonly (readonly [string, (config: Config) => unknown, unknown])[];
}

/** One test of each row, on a machine that has these files. */
export function testConfigRows(
  rows: readonly ConfigRow[],
  files: Readonly<Record<string, string>>,
): void {
  for (const { name, env = {}, refused, accepted } of rows) {
    const under = Object.entries(env).map(([key, value]) => `${key}=${value}`).join(" ");
    Deno.test(`parseConfig() checks ${name}${under === "" ? "" : ` when ${under}`}`, () => {
      for (const value of refused) {
        const found = faults({ ...env, [name]: value }, files);
        assert.ok(
          found.some((fault) => fault.variable === name),
          `${name}=${JSON.stringify(value)} was taken; faults: ${JSON.stringify(found)}`,
        );
      }
      for (const [value, read, expected] of accepted) {
        assert.deepEqual(read(ok({ ...env, [name]: value }, files)), expected, value);
      }
    });
  }
}
