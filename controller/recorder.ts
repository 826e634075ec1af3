import type { BackendName } from "./model/ids.ts";
import type { ReasonCode } from "./model/reason.ts";
import type { JournalEvent } from "./model/state.ts";

/**
 * Measurements. Label values are bounded by their types. Gauges that describe a state
 * (assignments, slots, parked) are read from the views when they are scraped, not kept here.
 */
export interface Recorder {
  fetched(result: "task" | "empty" | "throttled" | "error"): void;
  published(result: "stored" | "duplicate" | "error"): void;
  transition(backend: BackendName, event: JournalEvent): void;
  phase(backend: BackendName, phase: string, seconds: number): void;
  facadeRequest(method: string, code: string, seconds: number): void;
  executorFailed(backend: BackendName, reason: ReasonCode): void;
  recovered(backend: BackendName, count: number): void;
  svidExpiry(at: number): void;
  watchEvent(source: string): void;
  slotLeak(): void;
  /** What became of one delivery of Gitea's webhook. */
  webhook(result: WebhookResult): void;
}

/**
 * What a delivery of Gitea's webhook came to: Gitea is asked now, there is nothing to ask for, its
 * signature is not of our secret, another replica leads, or it could not be read.
 */
export type WebhookResult = "asked" | "ignored" | "forged" | "not_leading" | "unreadable";

/** Measures nothing. */
export const noRecorder: Recorder = {
  fetched() {},
  published() {},
  transition() {},
  phase() {},
  facadeRequest() {},
  executorFailed() {},
  recovered() {},
  svidExpiry() {},
  watchEvent() {},
  slotLeak() {},
  webhook() {},
};
