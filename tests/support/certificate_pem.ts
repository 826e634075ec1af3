import { toPem } from "../../clients/spiffe/der.ts";
import { createAuthority } from "../../clients/x509/trust_domain.ts";

/** An authority's certificate in PEM, for files that must hold one. */
export async function makeCertificatePem(): Promise<string> {
  const { bundleDer } = await createAuthority("example.org", Date.now());
  return toPem("CERTIFICATE", bundleDer);
}
