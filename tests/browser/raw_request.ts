/** What came back: 0 when the server hung up on what is no request. */
export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly text: string;
}

/**
 * A request exactly as it is said here: `fetch` puts paths and headers in order first. Resolves when the
 * server has closed the connection; a body that it does not take to the end is no failure.
 */
export async function rawRequest(
  port: number,
  target: string,
  { method = "GET", headers = {}, host = "localhost", body = [], headOnly = false }: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly host?: string;
    readonly body?: Iterable<Uint8Array>;
    /** Hangs up when the head of the answer is there. */
    readonly headOnly?: boolean;
  } = {},
): Promise<RawAnswer> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const lines = [
    `${method} ${target} HTTP/1.1`,
    `host: ${host}`,
    "connection: close",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  const write = async () => {
    for (const part of [new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`), ...body]) {
      for (let at = 0; at < part.length;) at += await connection.write(part.subarray(at));
    }
  };
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const read = async () => {
    const buffer = new Uint8Array(65_536);
    for (let size = await connection.read(buffer); size !== null;) {
      chunks.push(buffer.slice(0, size));
      if (headOnly && hasHead(chunks)) return;
      size = await connection.read(buffer);
    }
  };
  const ended = (error: unknown) => {
    const expected = error instanceof Deno.errors.ConnectionReset ||
      error instanceof Deno.errors.BrokenPipe;
    if (!expected) throw error;
  };
  await Promise.all([write().catch(ended), read().catch(ended)]);
  const text = await new Blob(chunks).text();
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0),
    head: text.split("\r\n\r\n", 1)[0] ?? "",
    text,
  };
}

function hasHead(chunks: readonly Uint8Array[]): boolean {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk)).join("").includes("\r\n\r\n");
}
