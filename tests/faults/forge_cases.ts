import type { FaultCase } from "./case.ts";
import type { ForgeSide } from "./forge_side.ts";

/** A forge that misbehaves. */
export const forgeCases: readonly FaultCase<ForgeSide>[] = [];
