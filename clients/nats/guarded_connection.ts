import type { NatsConnection } from "./connection.ts";

/**
 * The same connection for one that may lose the right to act: `guard` is asked at the moment of each
 * sending, so that no retry within an operation slips through either. What it throws is what a request
 * rejects with; a message without answer is dropped. Subscriptions, and what they bring, pass.
 */
export function guardConnection(connection: NatsConnection, guard: () => void): NatsConnection {
  const { wire } = connection;
  return {
    ...connection,
    wire: {
      ...wire,
      request: (subject, data, options) =>
        wire.request(subject, data, { ...options, before: guard }),
      publish(subject, data, options) {
        try {
          guard();
        } catch {
          return;
        }
        wire.publish(subject, data, options);
      },
    },
  };
}
