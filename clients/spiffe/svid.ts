import { X509Certificate } from "node:crypto";
import type { X509SVID } from "../../proto/gen/workload/workload_pb.ts";
import { readElements, toPem } from "./der.ts";
import { spiffeIdOf } from "./peer.ts";

/** An X.509-SVID with its key and the bundle to verify others by, as TLS libraries take them. */
export interface Svid {
  readonly spiffeId: string;
  /** Leaf first, then intermediates. */
  readonly certificatePem: string;
  /** PKCS#8. A secret: never log it. */
  readonly privateKeyPem: string;
  /** CA certificates of the trust domain. */
  readonly bundlePem: string;
  /** Of the leaf, upper-case hex. */
  readonly serial: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Reads an SVID as the Workload API gives it. Throws an `Error` that says what is wrong with it. */
export function readSvid(message: X509SVID): Svid {
  const chain = readElements(message.x509Svid);
  const bundle = readElements(message.bundle);
  const [leaf] = chain;
  if (leaf === undefined) throw new Error("Read SVID: it has no certificate");
  if (bundle.length === 0) throw new Error("Read SVID: it has no bundle");
  if (message.x509SvidKey.length === 0) throw new Error("Read SVID: it has no key");
  const peer = spiffeIdOf(leaf.whole, trustDomainOf(message.spiffeId));
  if (peer.kind === "refused") throw new Error(`Read SVID: ${peer.why}`);
  if (peer.spiffeId !== message.spiffeId) {
    throw new Error(
      `Read SVID: its certificate is for "${peer.spiffeId}", not for "${message.spiffeId}"`,
    );
  }
  const certificate = new X509Certificate(leaf.whole);
  return {
    spiffeId: message.spiffeId,
    certificatePem: chain.map((c) => toPem("CERTIFICATE", c.whole)).join(""),
    privateKeyPem: toPem("PRIVATE KEY", message.x509SvidKey),
    bundlePem: bundle.map((c) => toPem("CERTIFICATE", c.whole)).join(""),
    serial: certificate.serialNumber,
    expiresAt: Date.parse(certificate.validTo),
  };
}

/** Trust domain of a SPIFFE ID; empty for anything else. */
export function trustDomainOf(spiffeId: string): string {
  return /^spiffe:\/\/([^/]*)/.exec(spiffeId)?.[1] ?? "";
}
