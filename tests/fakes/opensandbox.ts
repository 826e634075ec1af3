import { aborted } from "../../lib/abortable.ts";
import { isObject, objectOrEmpty } from "../../lib/json_object.ts";

/** One sandbox of {@link FakeOpenSandbox}, in the form of the API. */
export interface FakeSandbox {
  readonly id: string;
  readonly status: { state: string; reason: string; message: string };
  metadata: Record<string, string>;
  /** What its program was given; no answer holds it. */
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly poolRef: string;
  createdAt: string;
  expiresAt: string | null;
}

/** How one request is spoilt; the first that fits is used up. */
export interface Fault {
  readonly method: string;
  /** `before`: nothing is done; `after`: it is done, and the answer lost or changed. */
  readonly when: "before" | "after";
  readonly answer:
    | { readonly kind: "cut" }
    | { readonly kind: "hang" }
    | {
      readonly kind: "status";
      readonly status: number;
      readonly body: string;
      readonly headers?: Readonly<Record<string, string>>;
    };
  readonly path?: RegExp;
  readonly times?: number;
}

/** A Lifecycle API in memory that answers as opensandbox-server 1.1.1 was measured to. */
export interface FakeOpenSandbox extends AsyncDisposable {
  readonly url: string;
  readonly sandboxes: Map<string, FakeSandbox>;
  /** Every request: method, path with query, and the key that it carried. */
  readonly requests: { readonly method: string; readonly path: string; readonly key: string }[];
  /** Bodies of creates. */
  readonly created: unknown[];
  faults: (Fault & { used?: number })[];
  /** Sandboxes that the pool has. */
  capacity: number;
  /** Creates wait here before their sandbox is there. */
  gate: Promise<void> | null;
  /** Called after each page of a list. */
  onPage: (() => void) | null;
  /** Puts one there as another client would. */
  plant(sandbox: Partial<FakeSandbox> & Pick<FakeSandbox, "metadata">): FakeSandbox;
  /** As the Docker runtime tells of an end. */
  end(id: string, code: number): void;
}

/** The key that {@link startFakeOpenSandbox} asks for. */
export const FAKE_KEY = "planted-api-key";

const POOL = "ci-vm";
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;

/** Starts a {@link FakeOpenSandbox} on a free port of loopback. */
export function startFakeOpenSandbox(): FakeOpenSandbox {
  const sandboxes = new Map<string, FakeSandbox>();
  const closing = new AbortController();
  let sequence = 0;

  const make = (sandbox: Partial<FakeSandbox> & Pick<FakeSandbox, "metadata">) => {
    sequence++;
    const made: FakeSandbox = {
      id: crypto.randomUUID(),
      status: { state: "Running", reason: "RUNNING", message: "" },
      env: {},
      entrypoint: [],
      poolRef: POOL,
      // Whole seconds, as Kubernetes has them.
      createdAt: new Date(1_800_000_000_000 + 1000 * sequence).toISOString(),
      expiresAt: null,
      ...sandbox,
    };
    sandboxes.set(made.id, made);
    return made;
  };

  const create = async (body: Readonly<Record<string, unknown>>): Promise<Response> => {
    fake.created.push(body);
    const metadata = texts(body.metadata);
    for (const [key, value] of Object.entries(metadata)) {
      if (VALUE.test(value) && value.length <= 63) continue;
      return refuse(400, "SANDBOX::INVALID_METADATA_LABEL", `Invalid value for ${key}`);
    }
    const { poolRef } = texts(body.extensions);
    if (poolRef !== POOL) {
      return refuse(404, "KUBERNETES::POOL_NOT_FOUND", `Pool '${poolRef}' not found`);
    }
    if (typeof body.timeout !== "number" || body.timeout < 60) {
      const detail = [{ type: "ge", loc: ["body", "timeout"], msg: "Input should be >= 60" }];
      return Response.json({ detail }, { status: 422 });
    }
    if (sandboxes.size >= fake.capacity) {
      const code = "KUBERNETES::POOL_CAPACITY_EXHAUSTED";
      return refuse(429, code, "no available pod in pool", { "retry-after": "30" });
    }
    await fake.gate;
    const entrypoint = Array.isArray(body.entrypoint) ? body.entrypoint.map(String) : [];
    const expiresAt = new Date(Date.now() + 1000 * body.timeout).toISOString();
    const made = make({ metadata, poolRef, entrypoint, env: texts(body.env), expiresAt });
    return Response.json(shown(made), { status: 202 });
  };

  const list = (query: URLSearchParams): Response => {
    const filter = [...new URLSearchParams(query.get("metadata") ?? "")];
    const size = Number(query.get("pageSize") ?? 20);
    const page = Number(query.get("page") ?? 1);
    const all = [...sandboxes.values()].reverse().filter(({ metadata }) =>
      filter.every(([key, value]) => metadata[key] === value)
    );
    const items = all.slice((page - 1) * size, page * size).map(shown);
    const totalPages = Math.ceil(all.length / size);
    const pagination = {
      page,
      pageSize: size,
      totalItems: all.length,
      totalPages,
      hasNextPage: page < totalPages,
    };
    fake.onPage?.();
    return Response.json({ items, pagination });
  };

  const handle = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const sent = await request.text();
    const body: unknown = sent === "" ? null : JSON.parse(sent);
    const id = /^\/v1\/sandboxes\/([^/]+)/.exec(url.pathname)?.[1];
    if (request.headers.get("open-sandbox-api-key") !== FAKE_KEY) {
      return refuse(401, "INVALID_API_KEY", "Authentication credentials are invalid");
    }
    if (id === undefined) {
      if (request.method === "POST") return await create(objectOrEmpty(body));
      return list(url.searchParams);
    }
    const found = sandboxes.get(decodeURIComponent(id));
    if (found === undefined) {
      return refuse(404, "KUBERNETES::SANDBOX_NOT_FOUND", `Sandbox ${id} not found`);
    }
    if (request.method === "DELETE") {
      sandboxes.delete(found.id);
      return new Response(null, { status: 204 });
    }
    if (request.method === "PATCH") {
      found.metadata = { ...found.metadata, ...texts(body) };
    }
    return Response.json(shown(found));
  };

  const spoil = async ({ answer }: Fault): Promise<Response> => {
    switch (answer.kind) {
      case "status": {
        const { status, body, headers } = answer;
        return new Response(body === "" ? null : body, { status, headers: { ...headers } });
      }
      case "hang":
        await aborted(closing.signal);
        return new Response(null, { status: 503 });
      case "cut": {
        const torn = new ReadableStream({ start: (stream) => stream.error(new Error("cut")) });
        return new Response(torn, { status: 200, headers: { "content-length": "100" } });
      }
    }
  };

  const faultFor = (request: Request) => {
    const { pathname } = new URL(request.url);
    const fault = fake.faults.find(({ method, path, times = 1, used = 0 }) =>
      method === request.method && (path?.test(pathname) ?? true) && used < times
    );
    if (fault !== undefined) fault.used = (fault.used ?? 0) + 1;
    return fault;
  };

  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen() {},
    onError: () => new Response(null, { status: 500 }),
  }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const key = request.headers.get("open-sandbox-api-key") ?? "";
    fake.requests.push({ method: request.method, path: pathname + search, key });
    const fault = faultFor(request);
    if (fault?.when === "before") {
      await request.body?.cancel();
      return await spoil(fault);
    }
    const answer = await handle(request);
    if (fault === undefined) return answer;
    await answer.body?.cancel();
    return await spoil(fault);
  });

  const fake: FakeOpenSandbox = {
    url: `http://127.0.0.1:${server.addr.port}`,
    sandboxes,
    requests: [],
    created: [],
    faults: [],
    capacity: 1000,
    gate: null,
    onPage: null,
    plant: make,
    end(id, code) {
      const status = sandboxes.get(id)?.status;
      if (status === undefined) throw new Error(`End sandbox "${id}": there is none`);
      status.state = code === 0 ? "Terminated" : "Failed";
      status.reason = code === 0 ? "CONTAINER_EXITED" : "CONTAINER_EXITED_ERROR";
      status.message = `Sandbox container exited with code ${code}.`;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await server.shutdown();
    },
  };
  return fake;
}

function shown({ env: _secret, entrypoint: _none, poolRef, ...rest }: FakeSandbox): unknown {
  return {
    ...rest,
    image: { uri: "unknown" },
    entrypoint: [],
    allocation: { mode: "pool", poolRef, state: "allocated" },
  };
}

function refuse(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ code, message }, { status, headers: { ...headers } });
}

function texts(value: unknown): Record<string, string> {
  const found: Record<string, string> = {};
  if (!isObject(value)) return found;
  for (const [key, each] of Object.entries(value)) {
    if (typeof each === "string") found[key] = each;
  }
  return found;
}
