import { Agent } from "node:https";
import { spiffeIdOf } from "../clients/spiffe/peer.ts";
import { type Svid, trustDomainOf } from "../clients/spiffe/svid.ts";

/** Connections to the facade that were made with one SVID. */
export interface TlsPool {
  readonly svid: Svid;
  /** For one call; dispose it at the call's end. */
  use(): { readonly agent: Agent } & Disposable;
  /** Closes the connections once no call is in flight. */
  retire(): void;
}

/** Makes a pool for the facade with exactly that SPIFFE ID; opens nothing yet. */
export function createTlsPool(svid: Svid, facadeSpiffeId: string): TlsPool {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 8,
    cert: svid.certificatePem,
    key: svid.privateKeyPem,
    ca: svid.bundlePem,
    minVersion: "TLSv1.3",
    ALPNProtocols: ["http/1.1"],
    checkServerIdentity: (_host, certificate) => {
      const peer = spiffeIdOf(certificate.raw, trustDomainOf(facadeSpiffeId));
      if (peer.kind === "known" && peer.spiffeId === facadeSpiffeId) return undefined;
      const met = peer.kind === "known" ? `"${peer.spiffeId}"` : peer.why;
      return new Error(`Check facade: met ${met}, wanted "${facadeSpiffeId}"`);
    },
  });
  let users = 0;
  let retired = false;
  const closeIfIdle = () => {
    if (retired && users === 0) agent.destroy();
  };
  return {
    svid,
    use() {
      users++;
      let used = true;
      return {
        agent,
        [Symbol.dispose]() {
          if (!used) return;
          used = false;
          users--;
          closeIfIdle();
        },
      };
    },
    retire() {
      retired = true;
      closeIfIdle();
    },
  };
}
