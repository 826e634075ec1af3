/** A server outside of everything under test that jobs tell when they begin and end. */
export interface OutsideCounter extends AsyncDisposable {
  readonly url: string;
  /** Every `POST /begin/<name>`, in order. */
  readonly begun: readonly string[];
  /** Every `POST /end/<name>`, in order. */
  readonly ended: readonly string[];
  /** Most that were between begin and end at one time. */
  readonly mostAtOnce: number;
  /** What jobs told by `POST /tell/<name>`: the bodies. */
  readonly told: ReadonlyMap<string, string>;
  /** How many hold on at `GET /hold` now. */
  readonly holding: number;
  /** Lets every job at `GET /hold` go on. */
  release(): void;
}

/** Starts an {@link OutsideCounter} on a loopback port. */
export function startOutsideCounter(): OutsideCounter {
  const begun: string[] = [];
  const ended: string[] = [];
  const told = new Map<string, string>();
  const running = new Set<string>();
  const gate = Promise.withResolvers<void>();
  let mostAtOnce = 0;
  let holding = 0;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const [, verb = "", name = ""] = new URL(request.url).pathname.split("/");
      switch (verb) {
        case "begin":
          begun.push(name);
          running.add(name);
          mostAtOnce = Math.max(mostAtOnce, running.size);
          break;
        case "end":
          ended.push(name);
          running.delete(name);
          break;
        case "tell":
          told.set(name, await request.text());
          break;
        case "hold":
          holding++;
          await gate.promise;
          holding--;
          break;
        default:
          return new Response("no such thing\n", { status: 404 });
      }
      return new Response("noted\n");
    },
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    begun,
    ended,
    told,
    release: () => gate.resolve(),
    get holding() {
      return holding;
    },
    get mostAtOnce() {
      return mostAtOnce;
    },
    async [Symbol.asyncDispose]() {
      gate.resolve();
      await server.shutdown();
    },
  };
}
