import { aborted } from "../../lib/abortable.ts";

/** How the answer to one create is spoilt. */
export type CreateFault =
  | "none"
  /** Made, answered late. */
  | "delay"
  /** Made, never answered. */
  | "hang"
  /** Not made: it failed to start. */
  | "failed"
  /** Not made: the pool is full. */
  | "full"
  /** Made although its time limit is said to be over. */
  | "timeout"
  /** Made, and an empty 502 in its place. */
  | "empty"
  /** Made, and the connection cut before the answer. */
  | "cut"
  /** An empty 502 at once, and made a little later. */
  | "late";

/** A proxy before a Lifecycle API. */
export interface VmFaultProxy extends AsyncDisposable {
  readonly url: string;
  /** When each create came, monotonic milliseconds. */
  readonly createdAt: number[];
  readonly met: Map<CreateFault, number>;
  /** Resolves when the creates that are late have been made. */
  settled(): Promise<unknown>;
}

/** Starts a {@link VmFaultProxy} on a free port of loopback; `fault` is asked at each create. */
export function startVmFaultProxy(server: string, fault: () => CreateFault): VmFaultProxy {
  const closing = new AbortController();
  const late = new Set<Promise<unknown>>();

  const forward = async (request: Request, body: string | null): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.delete("host");
    headers.delete("content-length");
    try {
      const answer = await fetch(server + pathname + search, {
        method: request.method,
        headers,
        body: body === null || body === "" ? null : body,
      });
      const text = await answer.text();
      return new Response(answer.status === 204 ? null : text, {
        status: answer.status,
        headers: { "content-type": "application/json" },
      });
    } catch {
      return new Response(null, { status: 502 }); // The server is away.
    }
  };

  const later = (work: Promise<unknown>) => {
    late.add(work);
    work.finally(() => late.delete(work)).catch(() => {});
  };

  const create = async (request: Request, body: string): Promise<Response> => {
    const kind = fault();
    proxy.createdAt.push(performance.now());
    proxy.met.set(kind, (proxy.met.get(kind) ?? 0) + 1);
    switch (kind) {
      case "none":
        return await forward(request, body);
      case "delay":
        await new Promise((resolve) => setTimeout(resolve, 400));
        return await forward(request, body);
      case "hang":
        later(forward(request, body));
        await aborted(closing.signal);
        return new Response(null, { status: 503 });
      case "failed":
        return said(500, "KUBERNETES::POD_FAILED");
      case "full":
        return said(429, "KUBERNETES::POOL_CAPACITY_EXHAUSTED");
      case "timeout":
        await forward(request, body);
        return said(504, "KUBERNETES::POD_READY_TIMEOUT");
      case "empty":
        await forward(request, body);
        return new Response(null, { status: 502 });
      case "cut":
        await forward(request, body);
        return new Response(
          new ReadableStream({ start: (stream) => stream.error(new Error("cut")) }),
          { status: 200, headers: { "content-length": "100" } },
        );
      case "late":
        later(
          new Promise((resolve) => setTimeout(resolve, 700)).then(() => forward(request, body)),
        );
        return new Response(null, { status: 502 });
      default:
        return kind satisfies never;
    }
  };

  const listener = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen() {},
    onError: () => new Response(null, { status: 500 }),
  }, async (request) => {
    const body = await request.text();
    const isCreate = request.method === "POST" && request.url.endsWith("/v1/sandboxes");
    return isCreate ? await create(request, body) : await forward(request, body);
  });

  const proxy: VmFaultProxy = {
    url: `http://127.0.0.1:${listener.addr.port}`,
    createdAt: [],
    met: new Map(),
    settled: () => Promise.allSettled([...late]),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.allSettled([...late]);
      await listener.shutdown();
    },
  };
  return proxy;
}

function said(status: number, code: string): Response {
  return Response.json({ code, message: "as the test wants it" }, {
    status,
    headers: { "retry-after": "1" },
  });
}
