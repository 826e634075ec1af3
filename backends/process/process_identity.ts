import type { Call } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";

/** Who gives process executors their SPIFFE identity: a development trust domain, or a SPIRE server. */
export interface ProcessIdentity {
  /** Value of `SPIFFE_ENDPOINT_SOCKET` for that executor; readable by `userId` once this resolves. */
  endpoint(executor: ExecutorName, userId: number | null, call: Call): Promise<string>;
  /** Gives the executor, running as unix user `userId` (null = ours), the SPIFFE ID. Idempotent. */
  bind(
    target: {
      readonly executor: ExecutorName;
      readonly userId: number | null;
      readonly spiffeId: string;
    },
    call: Call,
  ): Promise<void>;
  /** Takes it away. Absent is success. */
  unbind(executor: ExecutorName, call: Call): Promise<void>;
}
