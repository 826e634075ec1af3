import { toPem } from "../spiffe/der.ts";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "./peculiar.ts";

/** What {@link Authority.issue} makes: DER, as the Workload API carries it. */
export interface IssuedSvid {
  readonly certificateDer: Uint8Array;
  /** PKCS#8. A secret. */
  readonly keyDer: Uint8Array;
  /** Lower-case hex. */
  readonly serial: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** What to issue. Names are put in as they are, so that tests can make odd certificates too. */
export interface IssueRequest {
  /** URI names; an X.509-SVID has exactly one. */
  readonly uris: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly ttlMs: number;
}

/** The CA of a development trust domain: one EC P-256 key that signs leaves directly. */
export interface Authority {
  /** The trust bundle: the CA's certificate. */
  readonly bundleDer: Uint8Array;
  /** Before that nobody trusts it. */
  readonly startsAt: number;
  readonly expiresAt: number;
  /** Key (PKCS#8) and certificate, both PEM, to be kept with mode 0600. */
  exportPem(): Promise<string>;
  /** A leaf with a key of its own and a random serial. */
  issue(request: IssueRequest): Promise<IssuedSvid>;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const AUTHORITY_MS = 10 * 365 * 24 * 3_600_000;
/** Back-dated as SPIRE does, for clocks that differ a little. */
const BACKDATE_MS = 10_000;

/** Makes a CA for a trust domain, valid for ten years from `now` (milliseconds since the epoch). */
export async function createAuthority(trustDomain: string, now: number): Promise<Authority> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: randomSerial(),
    name: `CN=${trustDomain},O=development trust domain`,
    notBefore: new Date(now - BACKDATE_MS),
    notAfter: new Date(now + AUTHORITY_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      new SubjectAlternativeNameExtension([{ type: "url", value: `spiffe://${trustDomain}` }]),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return authorityOf(certificate, keys.privateKey);
}

/**
 * The CA that {@link Authority.exportPem} wrote. Throws an `Error` when the text is not one, or is
 * another trust domain's.
 */
export async function restoreAuthority(pem: string, trustDomain: string): Promise<Authority> {
  const key = section(pem, "PRIVATE KEY");
  const certificate = new X509Certificate(section(pem, "CERTIFICATE"));
  const names = certificate.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const id = names.find((name) => name.type === "url")?.value;
  if (id !== `spiffe://${trustDomain}`) {
    throw new Error(`Read CA: it is for "${id}", not for "spiffe://${trustDomain}"`);
  }
  const privateKey = await crypto.subtle.importKey("pkcs8", key, ALGORITHM, true, ["sign"]);
  return authorityOf(certificate, privateKey);
}

function authorityOf(certificate: X509Certificate, privateKey: CryptoKey): Authority {
  return {
    bundleDer: new Uint8Array(certificate.rawData),
    startsAt: certificate.notBefore.getTime(),
    expiresAt: certificate.notAfter.getTime(),
    async exportPem() {
      const key = new Uint8Array(await crypto.subtle.exportKey("pkcs8", privateKey));
      return `${toPem("PRIVATE KEY", key)}${certificate.toString("pem")}\n`;
    },
    async issue({ uris, now, ttlMs }) {
      const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
      const serial = randomSerial();
      // Certificates count in seconds: a later end than promised would outlive the rotation.
      const expiresAt = Math.floor((now + ttlMs) / 1000) * 1000;
      const leaf = await X509CertificateGenerator.create({
        serialNumber: serial,
        subject: "O=executor",
        issuer: certificate.subject,
        notBefore: new Date(now - BACKDATE_MS),
        notAfter: new Date(expiresAt),
        publicKey: keys.publicKey,
        signingKey: privateKey,
        signingAlgorithm: ALGORITHM,
        extensions: leafExtensions(uris),
      });
      return {
        certificateDer: new Uint8Array(leaf.rawData),
        keyDer: new Uint8Array(await crypto.subtle.exportKey("pkcs8", keys.privateKey)),
        serial,
        expiresAt,
      };
    },
  };
}

function leafExtensions(uris: readonly string[]): Extension[] {
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    // serverAuth and clientAuth: an SVID serves on both sides.
    new ExtendedKeyUsageExtension(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]),
  ];
  if (uris.length > 0) {
    const names = uris.map((value) => ({ type: "url" as const, value }));
    extensions.push(new SubjectAlternativeNameExtension(names));
  }
  return extensions;
}

/** 126 random bits, positive and without a leading zero byte, so that its hex is canonical. */
function randomSerial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toHex();
}

function section(pem: string, label: string): Uint8Array<ArrayBuffer> {
  const text = pem.match(new RegExp(`-----BEGIN ${label}-----([^-]+)-----END ${label}-----`))?.[1];
  if (text === undefined) throw new Error(`Read CA: the file has no "${label}"`);
  return Uint8Array.fromBase64(text.replace(/\s/g, ""));
}
