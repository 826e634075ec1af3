/**
 * Publishes one message by the bare protocol of NATS, so that a test puts exactly these bytes there
 * and not what a client of ours makes of them. Resolves when the server has read it.
 */
export async function publishPlain(
  url: string,
  message: { readonly subject: string; readonly data: Uint8Array },
): Promise<void> {
  const { hostname, port } = new URL(url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const encoder = new TextEncoder();
  await write(connection, encoder.encode('CONNECT {"verbose":false,"pedantic":false}\r\n'));
  const head = encoder.encode(`PUB ${message.subject} ${message.data.length}\r\n`);
  await write(connection, head);
  await write(connection, message.data);
  await write(connection, encoder.encode("\r\nPING\r\n"));
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(4096);
  let answer = "";
  while (!answer.includes("PONG")) {
    const length = await connection.read(buffer);
    if (length === null) {
      throw new Error(`Publish to "${message.subject}": NATS hung up: ${answer}`);
    }
    answer += decoder.decode(buffer.subarray(0, length), { stream: true });
    if (answer.includes("-ERR")) throw new Error(`Publish to "${message.subject}": ${answer}`);
  }
}

async function write(connection: Deno.TcpConn, data: Uint8Array): Promise<void> {
  for (let at = 0; at < data.length;) at += await connection.write(data.subarray(at));
}
