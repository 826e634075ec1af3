import { objectOrEmpty } from "../lib/json_object.ts";
import { replaceFile } from "../lib/replace_file.ts";

/**
 * Free ports on loopback for these names, chosen once and kept in `file`, so that what outlived a
 * killed controller finds it again. A kept port that is taken by somebody else now is replaced.
 * End what an earlier run left (`Supervisor.endLeftovers`) before asking.
 */
export async function choosePorts<const N extends string>(
  file: string,
  names: readonly N[],
): Promise<Readonly<Record<N, number>>> {
  const kept = parse(await Deno.readTextFile(file).catch(() => "{}"));
  const chosen = new Map<N, number>();
  const held: Deno.Listener[] = [];
  try {
    for (const name of names) {
      const wanted = kept.get(name);
      // Held until all are chosen: the next one must not be given the same.
      const listener = (wanted === undefined ? undefined : tryListen(wanted)) ?? tryListen(0);
      if (listener === undefined) throw new Error(`Choose a port for "${name}": none is free`);
      held.push(listener);
      chosen.set(name, listener.addr.transport === "tcp" ? listener.addr.port : 0);
    }
  } finally {
    for (const listener of held) listener.close();
  }
  const all = Object.fromEntries([...kept, ...chosen]);
  await replaceFile(file, `${JSON.stringify(all)}\n`);
  return Object.fromEntries(chosen) as Record<N, number>;
}

function tryListen(port: number): Deno.Listener | undefined {
  try {
    return Deno.listen({ hostname: "127.0.0.1", port });
  } catch (error) {
    if (port !== 0) return undefined;
    throw error;
  }
}

/** What cannot be read counts as nothing: new ports are chosen. */
function parse(text: string): Map<string, number> {
  try {
    const ports = Object.entries(objectOrEmpty(JSON.parse(text)));
    const usable = ports.filter((entry): entry is [string, number] => {
      const [, port] = entry;
      return typeof port === "number" && Number.isInteger(port) && port > 0 && port < 65536;
    });
    return new Map(usable);
  } catch {
    return new Map();
  }
}
