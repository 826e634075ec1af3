import { createBackgroundTasks } from "../support/background_tasks.ts";
import { eventually } from "../support/eventually.ts";
import type { KubeClient } from "../support/kube_client.ts";
import { at } from "../support/kube_manifests.ts";

/** A state of the Lease as a watch has told it. */
export interface LeaseState {
  /** Milliseconds since the epoch, of this machine's clock. */
  readonly at: number;
  readonly kind: "stands" | "deleted";
  readonly holder: string;
  readonly transitions: number;
}

/** What has become of the Lease of a namespace, oldest first. */
export interface LeaseHistory extends AsyncDisposable {
  readonly states: readonly LeaseState[];
  /** Resolves when the Lease is like that, to the state; looks from `since` on. */
  became(what: string, is: (state: LeaseState) => boolean, since: number): Promise<LeaseState>;
}

/** Follows every Lease in `namespace`: there is one. */
export function followLease(client: KubeClient, namespace: string): LeaseHistory {
  const stop = new AbortController();
  const tasks = createBackgroundTasks(() => {});
  const states: LeaseState[] = [];
  tasks.add((async () => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    for await (const { kind, object } of client.watch(path, stop.signal)) {
      states.push({
        at: Date.now(),
        kind: kind === "DELETED" ? "deleted" : "stands",
        holder: String(at(object, "spec", "holderIdentity") ?? ""),
        transitions: Number(at(object, "spec", "leaseTransitions") ?? 0),
      });
    }
  })());
  return {
    states,
    became: (what, is, since) =>
      eventually(() => states.find((state) => state.at >= since && is(state)), {
        what,
        timeoutMs: 40_000,
      }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await tasks.ended();
    },
  };
}

/**
 * Gaps in `leaseTransitions`, in words: it is raised by one when the Lease changes hands, else kept.
 * A Lease that was deleted may begin with 0 again where `anew` accepts the holder: client-go, and a
 * process that never saw the old one, cannot know better.
 */
export function transitionGaps(
  states: readonly LeaseState[],
  anew: (holder: string) => boolean,
): string[] {
  const found: string[] = [];
  let before: LeaseState | undefined;
  let deleted = false;
  for (const state of states) {
    if (state.kind === "deleted") {
      deleted = true;
      continue;
    }
    if (deleted && state.transitions === 0 && anew(state.holder)) before = undefined;
    deleted = false;
    if (before !== undefined) {
      const taken = state.holder !== "" && state.holder !== before.holder;
      const expected = before.transitions + (taken ? 1 : 0);
      if (state.transitions !== expected) {
        found.push(
          `${before.transitions} ("${before.holder}"), ${state.transitions} ("${state.holder}")`,
        );
      }
    }
    before = state;
  }
  return found;
}
