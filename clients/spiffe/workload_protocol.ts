import {
  X509SVIDRequestSchema,
  X509SVIDResponseSchema,
} from "../../proto/gen/workload/workload_pb.ts";
import { methodOf } from "../grpc/method.ts";

/** `SpiffeWorkloadAPI.FetchX509SVID`, a server stream. */
export const fetchX509Svid = methodOf("/SpiffeWorkloadAPI/FetchX509SVID", {
  request: X509SVIDRequestSchema,
  response: X509SVIDResponseSchema,
});

/** Metadata of every call; without it the answer is INVALID_ARGUMENT (SPIFFE Workload API, 3). */
export const SECURITY_HEADER = { "workload.spiffe.io": "true" } as const;

/**
 * The path in `unix:///path` or `unix:/path`; `undefined` for anything else (SPIFFE Workload
 * Endpoint, 4: no authority, query or fragment).
 */
export function socketPathOf(endpoint: string): string | undefined {
  const match = /^unix:(?:\/\/)?(\/[^?#]*)$/.exec(endpoint);
  return match?.[1]?.startsWith("//") ? undefined : match?.[1];
}
