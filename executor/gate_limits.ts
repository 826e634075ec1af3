/** Time limits of the gate, ms. */
export interface GateLimits {
  /** For the first SVID; 10 minutes. */
  readonly identityMs: number;
  /** Without any answer of the facade while there is no task; 10 minutes. */
  readonly facadeMs: number;
  /** For a facade that refuses this executor or its reports to change its mind; 1 minute. */
  readonly refusalMs: number;
  /** For the delivery after the runner has gone; 1 hour. */
  readonly deliveryMs: number;
  /** Between heartbeats; 10 s. */
  readonly heartbeatMs: number;
  /** For a runner to end after its final state was accepted; 30 s. */
  readonly lingerMs: number;
}

/** The limits of a gate in production. */
export const GATE_LIMITS: GateLimits = {
  identityMs: 600_000,
  facadeMs: 600_000,
  refusalMs: 60_000,
  deliveryMs: 3_600_000,
  heartbeatMs: 10_000,
  lingerMs: 30_000,
};
