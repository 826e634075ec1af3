import { type Element, readElements } from "./der.ts";

/** Who a certificate says its holder is. The caller has verified the chain; this reads the name. */
export type Peer =
  | { readonly kind: "known"; readonly spiffeId: string }
  | { readonly kind: "refused"; readonly why: string };

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  octetString: 0x04,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  uri: 0x86,
  extensions: 0xa3,
};
/** 2.5.29.17, subjectAltName. */
const SUBJECT_ALT_NAME = "551d11";
/** 2.5.29.19, basicConstraints. */
const BASIC_CONSTRAINTS = "551d13";
const SPIFFE_ID = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)+)$/;

/**
 * The SPIFFE ID of an X.509-SVID (SPIFFE X.509-SVID, 2 to 5), read from the certificate's own DER:
 * exactly one URI among its subject alternative names, a SPIFFE ID with a path, of that trust
 * domain, on a certificate that is not a CA. Everything else is refused, an absent or empty
 * certificate too (TLS libraries have answered `{}` for an authorized peer).
 */
export function spiffeIdOf(der: Uint8Array | undefined | null, trustDomain: string): Peer {
  if (der === undefined || der === null || der.length === 0) return refused("no certificate");
  let uris: readonly string[];
  try {
    const extensions = readExtensions(der);
    if (isAuthority(extensions)) return refused("the certificate is a CA's");
    uris = readUris(extensions);
  } catch {
    return refused("the certificate cannot be read");
  }
  const [uri, ...more] = uris;
  if (uri === undefined) return refused("the certificate has no URI name");
  if (more.length > 0) return refused(`the certificate has ${uris.length} URI names`);
  return checkSpiffeId(uri, trustDomain);
}

/**
 * The certificate's serial number in upper-case hex: tells one SVID from another of the same name in
 * logs. Null when it cannot be read. RFC 5280, 4.1.2.2.
 */
export function serialOf(der: Uint8Array): string | null {
  try {
    const certificate = only(readElements(der), TAG.sequence);
    const body = first(readElements(certificate.content), TAG.sequence);
    const serial = readElements(body.content).find((e) => e.tag === TAG.integer);
    return serial === undefined
      ? null
      : serial.content.toHex().replace(/^(?:00)+(?=..)/, "").toUpperCase();
  } catch {
    return null;
  }
}

/**
 * The end of the certificate's validity, milliseconds since the epoch. TLS checks it when a connection
 * is made; whoever keeps connections must look again. Null when it cannot be read (RFC 5280, 4.1.2.5).
 */
export function expiryOf(der: Uint8Array): number | null {
  try {
    const certificate = only(readElements(der), TAG.sequence);
    const body = first(readElements(certificate.content), TAG.sequence);
    // Signature algorithm, issuer, validity.
    const validity = readElements(body.content).filter((e) => e.tag === TAG.sequence)[2];
    const end = readElements(validity?.content ?? new Uint8Array())[1];
    return end === undefined ? null : timeOf(end);
  } catch {
    return null;
  }
}

/** Checks a SPIFFE ID by itself: scheme, trust domain, path segments, length (SPIFFE-ID, 2). */
export function checkSpiffeId(uri: string, trustDomain: string): Peer {
  const match = uri.length <= 2048 ? SPIFFE_ID.exec(uri) : null;
  if (match === null) return refused("the URI name is not a SPIFFE ID with a path");
  if (uri.split("/").some((segment) => segment === "." || segment === "..")) {
    return refused("the SPIFFE ID has a relative path");
  }
  if (match[1] !== trustDomain) return refused(`the SPIFFE ID is not of "${trustDomain}"`);
  return { kind: "known", spiffeId: uri };
}

/** Extension values by their OID's bytes in hex (RFC 5280, 4.1). */
function readExtensions(der: Uint8Array): ReadonlyMap<string, Uint8Array> {
  const certificate = only(readElements(der), TAG.sequence);
  const body = first(readElements(certificate.content), TAG.sequence);
  const wrapper = readElements(body.content).find((e) => e.tag === TAG.extensions);
  const found = new Map<string, Uint8Array>();
  if (wrapper === undefined) return found;
  for (const extension of readElements(only(readElements(wrapper.content), TAG.sequence).content)) {
    const parts = readElements(extension.content);
    const oid = first(parts, TAG.oid).content.toHex();
    const value = parts.at(-1);
    if (value?.tag !== TAG.octetString) throw new RangeError("Read extension: no value");
    // A second one could hide names from whoever reads only the first.
    if (found.has(oid)) throw new RangeError("Read extension: given twice");
    found.set(oid, value.content);
  }
  return found;
}

function isAuthority(extensions: ReadonlyMap<string, Uint8Array>): boolean {
  const value = extensions.get(BASIC_CONSTRAINTS);
  if (value === undefined) return false;
  const [flag] = readElements(only(readElements(value), TAG.sequence).content);
  return flag?.tag === TAG.boolean && flag.content[0] !== 0;
}

function readUris(extensions: ReadonlyMap<string, Uint8Array>): string[] {
  const value = extensions.get(SUBJECT_ALT_NAME);
  if (value === undefined) return [];
  return readElements(only(readElements(value), TAG.sequence).content)
    .filter((name) => name.tag === TAG.uri)
    .map((name) => new TextDecoder("latin1").decode(name.content));
}

/** UTCTime (years 1950 to 2049) or GeneralizedTime, both in seconds and UTC. */
function timeOf({ tag, content }: Element): number | null {
  const text = new TextDecoder("latin1").decode(content);
  const match = /^(\d{2}|\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/.exec(text);
  const [, year = ""] = match ?? [];
  if (match === null || (year.length === 2) !== (tag === TAG.utcTime)) return null;
  if (tag !== TAG.utcTime && tag !== TAG.generalizedTime) return null;
  const century = year.length === 4 ? "" : Number(year) < 50 ? "20" : "19";
  const [month, day, hour, minute, second] = match.slice(2);
  const time = Date.parse(`${century}${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(time) ? null : time;
}

function only(elements: readonly Element[], tag: number): Element {
  const [element, ...more] = elements;
  if (element?.tag !== tag || more.length > 0) {
    throw new RangeError("Read certificate: unexpected element");
  }
  return element;
}

function first(elements: readonly Element[], tag: number): Element {
  const [element] = elements;
  if (element?.tag !== tag) throw new RangeError("Read certificate: unexpected element");
  return element;
}

function refused(why: string): Peer {
  return { kind: "refused", why };
}
