import type { Sandboxes } from "../../backends/vm/sandboxes.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import {
  type ExecutorName,
  executorName,
  type Instance,
  instanceOf,
} from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { TaskRecord } from "../../controller/model/record.ts";
import { Secret } from "../../lib/secret.ts";
import { createOwnership } from "../../wiring/ownership.ts";
import { keptAssignment, keptRecord } from "../support/kept_jobs.ts";
import { removeMetadata } from "../support/sandbox_metadata.ts";
import { VM_PREFIX, vmBackend } from "../support/vm_backend_setup.ts";
import type { Stage } from "./stage.ts";

/** What may be wrong with a sandbox, so that it cannot be believed. */
export const FLAWS = ["missing chunk", "wrong identity", "unsigned", "another instance"] as const;
/** One of {@link FLAWS}. */
export type Flaw = typeof FLAWS[number];

/** A sandbox that was made for a kept job. */
export interface Made {
  readonly name: ExecutorName;
  readonly uid: string;
  readonly info: AssignmentInfo;
  /** Undefined for one with which nothing is wrong. */
  readonly flaw: Flaw | undefined;
}

/** Makes sandboxes of kept jobs. */
export interface Maker {
  /** `index`: of the kept job, from 0. */
  make(index: number, flaw: Flaw | undefined): Promise<Made>;
}

const POD_NAMESPACE = "gitea-actions";

/** Makes sandboxes as the controller of this stage does, or with one thing wrong. */
export async function createMaker(
  { peers, base, repository, signal }: Stage,
  api: Sandboxes,
): Promise<Maker> {
  const call = { signal };
  const text = async (file: string) => (await Deno.readTextFile(file)).trim();
  const uuid = await text(`${base.registration}/GITEA_RUNNER_UUID`);
  const key = new Secret(await text(base.capabilityKeyFile));
  const { trustDomain } = peers.spire;
  const keys = metadataKeys(VM_PREFIX).annotations;
  const of = (instance: Instance) => ({
    instance,
    ownership: createOwnership({ keys: [key], prefix: VM_PREFIX, instance, trustDomain }),
    backend: vmBackend(api, { instance }),
  });
  const ours = of(await instanceOf(uuid, POD_NAMESPACE));
  const others = of(await instanceOf(uuid, "another-namespace"));
  return {
    async make(index, flaw) {
      const { instance, ownership, backend } = flaw === "another instance" ? others : ours;
      const info = keptAssignment(index, { backend: "vm", repository, trustDomain });
      const name = executorName(instance, info.id);
      const composed = await ownership.compose(name, info, nonceOf(info));
      const { [keys.signature]: signature = "", ...unsigned } = composed.annotations;
      const annotations = flaw === "unsigned" ? unsigned : {
        ...unsigned,
        [keys.signature]: signature,
        ...flaw === "wrong identity"
          ? { [keys.spiffeId]: `spiffe://${trustDomain}/ci/${repository}/another` }
          : {},
      };
      const executor = await backend.create({
        name,
        metadata: { ...composed, annotations },
        environment: { CI_ASSIGNMENT_ID: info.id },
        assignment: info,
      }, call);
      if (flaw !== "wrong identity") await backend.bindIdentity(executor, info, call);
      if (flaw === "missing chunk") {
        await removeMetadata(peers.opensandbox, executor.uid, `${VM_PREFIX}/annotations-001`);
      }
      return { name, uid: executor.uid, info, flaw };
    },
  };
}

/** The record of its job. The signature is what proves one whose create had no answer. */
export function recordOf({ name, uid, info, flaw }: Made, epoch: number): TaskRecord {
  const executor = flaw === "unsigned" ? null : { name, uid };
  return keptRecord(info, { epoch, nonce: nonceOf(info), executor });
}

function nonceOf({ id }: AssignmentInfo): string {
  return `nonce-of-${id}`;
}
