import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import http2 from "node:http2";
import https from "node:https";
import type { NodeRequest } from "../clients/connect/node_handler.ts";
import type { Svid } from "../clients/spiffe/workload_api.ts";
import { bareHost } from "../lib/host.ts";
import { deferDestroy } from "../lib/http2_session.ts";

/** What the self test found. */
export interface SelfTest {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly http1: "ok";
  readonly http2: "ok";
}

const PATH = "/self-test/v1";
const HEADER = "x-self-test";
const LIMIT_MS = 10_000;

/**
 * Calls the facade over TLS as an executor would, with its own SVID: HTTP/2 and HTTP/1.1 by ALPN, and
 * once without a certificate. Runtimes have broken each of these in a release (silently empty peer
 * certificates, no HTTP/2 server): it is better not to start. Throws an `Error` that says what
 * failed.
 */
export async function selfTest(
  target: {
    readonly host: string;
    readonly port: number;
    readonly svid: Svid;
    readonly nonce: string;
  },
): Promise<Omit<SelfTest, "at">> {
  await expectStatus("HTTP/2", callHttp2(target));
  await expectStatus("HTTP/1.1", callHttp1(target, true));
  await expectRefusal(callHttp1(target, false));
  return { http1: "ok", http2: "ok" };
}

/** True for a call of the self test that knows this nonce. */
export function isSelfTest({ url, headers }: NodeRequest, nonce: string): boolean {
  const shown = headers[HEADER];
  return url === PATH && typeof shown === "string" && shown.length === nonce.length &&
    timingSafeEqual(Buffer.from(shown.padEnd(nonce.length)), Buffer.from(nonce));
}

type Target = Parameters<typeof selfTest>[0];

async function expectStatus(what: string, call: Promise<number>): Promise<void> {
  let status: number;
  try {
    status = await call;
  } catch (cause) {
    throw new Error(`Self test of the facade over ${what}: the call failed`, { cause });
  }
  if (status !== 204) {
    throw new Error(
      `Self test of the facade over ${what}: it did not see our certificate (status ${status})`,
    );
  }
}

async function expectRefusal(call: Promise<number>): Promise<void> {
  const outcome = await call.then((status) => status, () => "refused" as const);
  if (outcome !== "refused") {
    throw new Error(
      `Self test of the facade: a client without a certificate got status ${outcome}`,
    );
  }
}

function callHttp2({ host, port, svid, nonce }: Target): Promise<number> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(`https://${host}:${port}`, {
      ca: svid.bundlePem,
      cert: svid.certificatePem,
      key: svid.privateKeyPem,
      // An SVID has no host name; that it is ours is known by its CA and by the nonce.
      checkServerIdentity: () => undefined,
    });
    deferDestroy(session);
    const timer = setTimeout(() => fail(new Error("no answer")), LIMIT_MS);
    const fail = (error: Error) => {
      clearTimeout(timer);
      session.destroy();
      reject(error);
    };
    session.on("error", fail);
    const stream = session.request({ ":path": PATH, [HEADER]: nonce });
    stream.on("error", fail);
    stream.on("response", (headers) => {
      clearTimeout(timer);
      resolve(Number(headers[":status"]));
      stream.resume();
      stream.close();
      session.close();
    });
    stream.on("close", () => fail(new Error("the stream was closed")));
    stream.end();
  });
}

function callHttp1({ host, port, svid, nonce }: Target, withCertificate: boolean): Promise<number> {
  return new Promise((resolve, reject) => {
    const own = withCertificate ? { cert: svid.certificatePem, key: svid.privateKeyPem } : {};
    const request = https.request({
      host: bareHost(host),
      port,
      path: PATH,
      headers: { [HEADER]: nonce, connection: "close" },
      ca: svid.bundlePem,
      ...own,
      agent: false,
      checkServerIdentity: () => undefined,
    }, (response) => {
      clearTimeout(timer);
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    const timer = setTimeout(() => request.destroy(new Error("no answer")), LIMIT_MS);
    request.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    request.end();
  });
}
