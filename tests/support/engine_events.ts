/** Events of a job up to the moment when its executor may claim, if nothing goes wrong. */
export const TO_READY = [
  "received",
  "capacity_acquired",
  "executor_absent",
  "executor_created",
  "identity_bound",
  "backend_ready",
];

/** Events from the claim to the end. */
export const FROM_CLAIM = ["runner_claimed", "acked", "running", "terminal", "marked", "cleaned"];

/** All events of a job that goes well. */
export const HAPPY = [...TO_READY, ...FROM_CLAIM];
