import type { BackendName } from "../../controller/model/ids.ts";
import { createCases } from "./backend_create_cases.ts";
import { endCases } from "./backend_end_cases.ts";
import { identityCases } from "./backend_identity_cases.ts";
import type { BackendWorld, Contract, Unpromised } from "./backend_suite.ts";

/** What every backend promises; runs on the fake and on the real ones. */
export function backendContract(
  name: string,
  setup: () => Promise<BackendWorld>,
  options: {
    readonly ignore?: boolean;
    readonly backend?: BackendName;
    /** What does not exist for this backend, and is not tested. */
    readonly without?: readonly Unpromised[];
  } = {},
): void {
  const contract: Contract = {
    kind: options.backend ?? "pod",
    test(promise, run, needs) {
      if (needs !== undefined && options.without?.includes(needs)) return;
      Deno.test({
        name: `${name}: ${promise}`,
        ignore: options.ignore ?? false,
        async fn() {
          await using world = await setup();
          await run(world, world.backend);
        },
      });
    },
  };
  createCases(contract);
  identityCases(contract);
  endCases(contract);
}
