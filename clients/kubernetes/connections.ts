import { type Material, sameConnection } from "./material.ts";

/** A use of the shared connections; dispose it when the answer has been read or given up. */
export interface ConnectionUse extends Disposable {
  readonly http: Deno.HttpClient;
}

/** The connections to the API server, shared by all calls with the same trust and certificate. */
export interface Connections extends Disposable {
  /** Connections for `material`: those of the last call, unless trust, certificate or proxy differ. */
  use(material: Material): ConnectionUse;
  /**
   * Gives the present connections up for new calls, because one of them was silent: a peer that
   * vanished without a word leaves others like it in the pool. `use` names those that were silent.
   */
  retire(use: ConnectionUse): void;
}

/** An API server closes idle connections after 90 s; we do so first, and never meet its close. */
const IDLE_MS = 60_000;
const MAX_IDLE = 16;

/** Opens nothing by itself: the connections come with the requests. */
type OpenConnections = (material: Material) => Deno.HttpClient;

/** Makes {@link Connections}; opens nothing yet. Those that were replaced close when their calls end. */
export function createConnections(open: OpenConnections = openConnections): Connections {
  interface Pool {
    readonly material: Material;
    readonly http: ReturnType<OpenConnections>;
    users: number;
    current: boolean;
    closed: boolean;
  }
  let pool: Pool | null = null;
  const pools = new WeakMap<ConnectionUse, Pool>();

  const closeIfDone = (old: Pool) => {
    if (old.current || old.users > 0 || old.closed) return;
    old.closed = true;
    old.http.close();
  };
  const replace = () => {
    if (pool === null) return;
    const old = pool;
    pool = null;
    old.current = false;
    closeIfDone(old);
  };

  return {
    use(material) {
      if (pool !== null && !sameConnection(pool.material, material)) replace();
      pool ??= { material, http: open(material), users: 0, current: true, closed: false };
      const mine = pool;
      mine.users += 1;
      let done = false;
      const use: ConnectionUse = {
        http: mine.http,
        [Symbol.dispose]() {
          if (done) return;
          done = true;
          mine.users -= 1;
          closeIfDone(mine);
        },
      };
      pools.set(use, mine);
      return use;
    },
    retire(use) {
      if (pool !== null && pools.get(use) === pool) replace();
    },
    [Symbol.dispose]: replace,
  };
}

function openConnections({ ca, certificate, proxy }: Material): Deno.HttpClient {
  const options = {
    ...ca === null ? {} : { caCerts: [ca] },
    ...proxy === null ? {} : { proxy: { url: proxy } },
    // One request at a time on each connection: with HTTP/2 a single one that hangs, or a watch that
    // is read slowly, would hold up every call, the renewal of a lease among them.
    http2: false,
    poolIdleTimeout: IDLE_MS,
    poolMaxIdlePerHost: MAX_IDLE,
  };
  return certificate === null
    ? Deno.createHttpClient(options)
    : Deno.createHttpClient({ ...options, cert: certificate.cert, key: certificate.key.reveal() });
}
