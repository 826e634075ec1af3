import { toPem } from "../../clients/spiffe/der.ts";
import type { Svid } from "../../clients/spiffe/svid.ts";
import type { Authority } from "../../clients/x509/trust_domain.ts";

/** An SVID as the Workload API would give it, for an hour; with odd names for odd peers. */
export async function issueSvid(authority: Authority, uris: readonly string[]): Promise<Svid> {
  const issued = await authority.issue({ uris, now: Date.now(), ttlMs: 3_600_000 });
  return {
    spiffeId: uris[0] ?? "",
    certificatePem: toPem("CERTIFICATE", issued.certificateDer),
    privateKeyPem: toPem("PRIVATE KEY", issued.keyDer),
    bundlePem: toPem("CERTIFICATE", authority.bundleDer),
    serial: issued.serial,
    expiresAt: issued.expiresAt,
  };
}
