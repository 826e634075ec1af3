/** One change of a {@link FakeApiServer}'s collection. */
export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly name: string;
  readonly version: number;
}

/** One collection of an API server, as list and watch see it; faults happen when told to. */
export interface FakeApiServer {
  /** Answers a list or a watch. */
  handle(request: Request): Response;
  /** Makes or changes an object; gives the version of that change. */
  put(name: string): number;
  /** Deletes an object; nothing when there is none. */
  remove(name: string): void;
  /** Sends a bookmark to every open watch. */
  bookmark(): void;
  /** Forgets what happened until now: older places are answered with 410. */
  compact(): void;
  /** Sets the store back to a backup: versions begin again at a smaller one. */
  turnBack(): void;
  /**
   * Ends the open watches: in order, by a broken connection, or after half a line. Those that come
   * from an older place meet 410 as `expired` says.
   */
  cut(how: "clean" | "broken" | "mid_line"): void;
  /** The open watches never hear anything again, nor an end. */
  stall(): void;
  /** Sends a line as it is to every open watch. */
  say(line: string): void;
  /** The next `times` requests get this answer. */
  fail(times: number, answer: () => Response): void;
  /** How a forgotten place is answered: by the status, or as an event after status 200. */
  expired: "status" | "event";
  /** Names and versions of what there is. */
  objects(): Map<string, number>;
  /** Every change ever, oldest first. */
  readonly history: readonly Change[];
  /** When lists began (each first page), by `now`. */
  readonly listedAt: readonly number[];
  /** Versions of the lists whose last page was given. */
  readonly listed: readonly number[];
  /** What there was at a version. */
  stateAt(version: number): Map<string, number>;
  /** Queries of the watches, in order. */
  readonly watched: readonly URLSearchParams[];
  /** Headers of the last request. */
  readonly headers: Headers;
  /** Watches that are open and hear something. */
  readonly open: number;
}

/** Makes a {@link FakeApiServer} without objects. */
export function createFakeApiServer(now: () => number = () => 0): FakeApiServer {
  const encoder = new TextEncoder();
  const watches = new Set<ReadableStreamDefaultController<Uint8Array>>();
  const objects = new Map<string, number>();
  const history: Change[] = [];
  const listedAt: number[] = [];
  const listed: number[] = [];
  const watched: URLSearchParams[] = [];
  const failures: (() => Response)[] = [];
  let version = 100;
  let forgotten = 99;
  let headers = new Headers();

  const object = (name: string, at: number) => ({
    kind: "Thing",
    metadata: { name, resourceVersion: String(at) },
  });
  const line = (event: unknown) => encoder.encode(`${JSON.stringify(event)}\n`);
  const lineOf = ({ type, name, version }: Change) => line({ type, object: object(name, version) });
  const send = (bytes: Uint8Array) => {
    for (const watch of watches) watch.enqueue(bytes);
  };
  const happen = (type: Change["type"], name: string) => {
    version += 1;
    const change = { type, name, version };
    history.push(change);
    send(lineOf(change));
    return version;
  };
  const gone = () => ({ ...status(410, "Expired", "too old resource version") });

  const list = (query: URLSearchParams) => {
    const limit = Number(query.get("limit") ?? Infinity);
    const token = query.get("continue");
    const [at, after] = token === null ? [version, ""] : token.split("/", 2);
    if (token === null) listedAt.push(now());
    if (Number(at) < forgotten) return Response.json(gone(), { status: 410 });
    const names = [...stateAt(history, Number(at))].filter(([name]) => name > (after ?? ""))
      .sort(([a], [b]) => a < b ? -1 : 1);
    const page = names.slice(0, limit);
    const last = page.at(-1)?.[0];
    if (names.length === page.length) listed.push(Number(at));
    return Response.json({
      metadata: {
        resourceVersion: String(at),
        ...names.length > page.length ? { continue: `${at}/${last}` } : {},
      },
      items: page.map(([name, at]) => object(name, at)),
    });
  };

  const watch = (query: URLSearchParams) => {
    watched.push(query);
    const from = Number(query.get("resourceVersion"));
    const old = from < forgotten;
    if (old && server.expired === "status") return Response.json(gone(), { status: 410 });
    let mine: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        mine = controller;
        if (old) {
          controller.enqueue(line({ type: "ERROR", object: gone() }));
          controller.close();
          return;
        }
        for (const change of history) {
          if (change.version > from) controller.enqueue(lineOf(change));
        }
        watches.add(controller);
      },
      cancel: () => void watches.delete(mine),
    });
    return new Response(body, { headers: { "content-type": "application/json" } });
  };

  const server: FakeApiServer = {
    handle(request) {
      headers = request.headers;
      const failure = failures.shift();
      if (failure !== undefined) return failure();
      const query = new URL(request.url).searchParams;
      return query.get("watch") === "true" ? watch(query) : list(query);
    },
    put(name) {
      const at = happen(objects.has(name) ? "MODIFIED" : "ADDED", name);
      objects.set(name, at);
      return at;
    },
    remove(name) {
      if (objects.delete(name)) happen("DELETED", name);
    },
    bookmark() {
      version += 1; // Something happened in another collection.
      const metadata = { resourceVersion: String(version) };
      send(line({ type: "BOOKMARK", object: { kind: "Thing", metadata } }));
    },
    compact() {
      forgotten = version;
    },
    turnBack() {
      version -= 50;
      forgotten = version;
      history.length = 0;
      objects.clear();
    },
    cut(how) {
      for (const controller of watches) {
        if (how === "mid_line") {
          const bytes = lineOf({ type: "ADDED", name: "cut", version: version + 1 });
          controller.enqueue(bytes.subarray(0, bytes.length / 2));
        }
        if (how === "broken") controller.error(new Error("connection reset"));
        else controller.close();
      }
      watches.clear();
    },
    stall: () => watches.clear(),
    say: (text) => send(encoder.encode(`${text}\n`)),
    fail(times, answer) {
      for (let i = 0; i < times; i++) failures.push(answer);
    },
    expired: "event",
    objects: () => new Map(objects),
    history,
    listedAt,
    listed,
    stateAt: (version) => stateAt(history, version),
    watched,
    get headers() {
      return headers;
    },
    get open() {
      return watches.size;
    },
  };
  return server;
}

/** A `Status` object, as in the body of a refusal. */
export function status(code: number, reason: string, message: string) {
  return { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message };
}

function stateAt(history: readonly Change[], version: number): Map<string, number> {
  const state = new Map<string, number>();
  for (const change of history) {
    if (change.version > version) break;
    if (change.type === "DELETED") state.delete(change.name);
    else state.set(change.name, change.version);
  }
  return state;
}
