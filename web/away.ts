import { QueueError } from "../controller/queue.ts";

/**
 * Gives `instead` when what is read of the streams cannot be had now: a page that says so is better than
 * none. Every other error is a fault of ours, and goes on to where faults are logged.
 */
export function whenAway<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (isAway(error)) return instead;
    throw error;
  };
}

/** NATS refuses, is away, or does not answer in time. */
export function isAway(error: unknown): boolean {
  if (error instanceof QueueError) return true;
  return error instanceof DOMException && ["TimeoutError", "AbortError"].includes(error.name);
}
