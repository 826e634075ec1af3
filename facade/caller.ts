import { expiryOf, serialOf, spiffeIdOf } from "../clients/spiffe/peer.ts";
import { type AssignmentId, parseAssignmentId } from "../controller/model/ids.ts";
import type { Capabilities } from "./capability.ts";

/** Headers of the gate (docs/architecture.md). */
const HEADERS = {
  assignment: "x-runner-uuid",
  capability: "x-runner-token",
  gate: "x-gate-instance",
} as const;

/** A caller whose certificate and capability have been checked. */
export interface Caller {
  readonly assignment: AssignmentId;
  readonly spiffeId: string;
  /** Serial of its SVID; null when the certificate does not tell. */
  readonly serial: string | null;
  /** The gate's random instance id. */
  readonly gate: string;
}

/** Who a peer's certificate says it is. */
export type KnownPeer = { readonly kind: "peer" } & Pick<Caller, "spiffeId" | "serial">;

/** `why` is for our log only: a caller learns nothing from it. */
export type Refused = { readonly kind: "refused"; readonly why: string };

/** An SVID that was good when its connection was made, and is over now. */
export type Expired = { readonly kind: "expired" };

/** Checks callers against one trust domain. */
export interface Authenticator {
  /**
   * By the peer certificate's DER at `now` (milliseconds since the epoch). Absent, empty and odd ones
   * are refused.
   */
  peer(certificate: Uint8Array | undefined, now: number): KnownPeer | Refused | Expired;
  /** By the headers, for a peer that was let in. */
  caller(
    peer: KnownPeer,
    header: (name: string) => string | null,
  ): { readonly kind: "caller"; readonly caller: Caller } | Refused;
}

const GATE = /^[0-9a-f]{32}$/;
const MAX_CAPABILITY = 128;

/**
 * Authorisation is SPIFFE ID **and** capability. That the SPIFFE ID is the assignment's own is
 * checked where the assignment is known (`Registry.resolve`).
 */
export function createAuthenticator(
  { trustDomain, capabilities }: {
    readonly trustDomain: string;
    readonly capabilities: Capabilities;
  },
): Authenticator {
  return {
    peer(certificate, now) {
      const peer = spiffeIdOf(certificate, trustDomain);
      if (peer.kind === "refused" || certificate === undefined) {
        return peer.kind === "refused" ? peer : refused("no certificate");
      }
      const expiry = expiryOf(certificate);
      if (expiry === null) return refused("the certificate does not say when it ends");
      if (expiry <= now) return { kind: "expired" };
      return { kind: "peer", spiffeId: peer.spiffeId, serial: serialOf(certificate) };
    },
    caller({ spiffeId, serial }, header) {
      const assignment = parseAssignmentId(header(HEADERS.assignment) ?? "");
      if (assignment === undefined) {
        return refused(`"${HEADERS.assignment}" is not an assignment id`);
      }
      const presented = header(HEADERS.capability) ?? "";
      if (presented.length > MAX_CAPABILITY || !capabilities.verify(assignment, presented)) {
        return refused("the capability is not this assignment's");
      }
      const gate = header(HEADERS.gate) ?? "";
      if (!GATE.test(gate)) return refused(`"${HEADERS.gate}" is not 32 hex digits`);
      return { kind: "caller", caller: { assignment, spiffeId, serial, gate } };
    },
  };
}

function refused(why: string): Refused {
  return { kind: "refused", why };
}
