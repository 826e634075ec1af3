import type { World } from "./world.ts";
import type { Side } from "./side.ts";

/** One case: does something to a world in which nothing is left, and leaves nothing in it. */
export interface FaultCase<S extends Side = Side> {
  readonly name: string;
  /** Rejects when the product did not keep its promise; resolves to the figures. */
  run(world: World<S>): Promise<string>;
}
