import { toPem } from "../spiffe/der.ts";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "./peculiar.ts";

/** A self-signed leaf and its key, as TLS servers take them. */
export interface GateCertificate {
  readonly certificatePem: string;
  /** PKCS#8. A secret: in memory only. */
  readonly privateKeyPem: string;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/**
 * A certificate with which the identity gate plays `host` (a name or an IP address) towards the
 * runner process. Not a CA: who trusts it trusts this one key for this one host. Valid from a day
 * before `now` (milliseconds since the epoch) for a week, longer than any job.
 */
export async function createGateCertificate(host: string, now: number): Promise<GateCertificate> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const day = 24 * 3_600_000;
  const type = /^[0-9.]+$/.test(host) || host.includes(":") ? "ip" : "dns";
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: `4${crypto.getRandomValues(new Uint8Array(16)).toHex().slice(1)}`,
    name: "CN=identity gate",
    notBefore: new Date(now - day),
    notAfter: new Date(now + 7 * day),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension(["1.3.6.1.5.5.7.3.1"]),
      new SubjectAlternativeNameExtension([{ type, value: host }]),
    ],
  });
  const key = new Uint8Array(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
  return {
    certificatePem: `${certificate.toString("pem")}\n`,
    privateKeyPem: toPem("PRIVATE KEY", key),
  };
}
