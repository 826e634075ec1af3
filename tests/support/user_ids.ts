import type { UserIds } from "../../backends/process/users.ts";

/** Of one process of tests; below 65,536, which is all that a container may have. */
const PER_PROCESS = 100;
const FIRST = 61_000 + (Deno.pid % 40) * PER_PROCESS;

/**
 * Unix users for executors of a test: `count` from `offset` on. Two runs of the tests on one machine
 * have different ones, as two controllers must; tests of one run that need free ones differ in `offset`.
 */
export function testUserIds(offset: number, count: number): UserIds {
  if (offset + count > PER_PROCESS) throw new RangeError(`${offset} + ${count} > ${PER_PROCESS}`);
  return { first: FIRST + offset, count };
}
