import { type KubeClient, KubeError } from "../support/kube_client.ts";

const AGAIN_MS = 250;
/** Longer than an API server takes to start again. */
const LIMIT_MS = 60_000;

/**
 * The same client for a kubelet, whose reports survive an API server that is away: what got no answer, or
 * a 5xx or 429, is asked for again for a minute.
 */
export function patientClient(client: KubeClient): KubeClient {
  return {
    ...client,
    async call(method, path, body) {
      const end = performance.now() + LIMIT_MS;
      while (true) {
        try {
          return await client.call(method, path, body);
        } catch (error) {
          const final = error instanceof KubeError && error.status < 500 && error.status !== 429;
          if (final || performance.now() > end) throw error;
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        }
      }
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  };
}
