import { type Alone, checkSuites } from "../support/contract_suites.ts";

/** The contract of backends: in memory, on the real server, and on the real server on a real API server. */
export async function checkContract(alone: Alone): Promise<void> {
  await checkSuites(alone, [
    { file: "backend_vm_fake_test.ts" },
    { file: "backend_vm_real.ts", label: "on a stand-in of an API server" },
    {
      file: "backend_vm_real.ts",
      label: "on a real API server",
      env: { VM_ON: "kube" },
      // The stand-in has switches for starts that fail or hang, a full pool and deletions that take time.
      elsewhere: [
        "a start that fails, one that hangs, and a full pool leave nothing behind",
        "one that is deleted while it is made is gone at once, and its pool goes on",
        "one that stays in deletion is told as such, and may be deleted again",
      ],
    },
  ]);
}

/** Rounds of create and delete with spoilt answers and a server that is killed. */
export async function checkRounds(
  alone: Alone,
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
): Promise<void> {
  await checkSuites(alone, [{
    file: "backend_vm_faults.ts",
    env: { VM_ROUNDS: String(rounds), VM_SEED: String(seed) },
    limitMs: 60_000 + rounds * 5_000,
  }]);
}
