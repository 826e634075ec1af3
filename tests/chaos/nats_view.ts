import { askApi } from "../../clients/nats/api.ts";
import { createBucket } from "../../clients/nats/bucket.ts";
import { connectNats } from "../../clients/nats/connection.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";

/** A second look at the controller's own nats-server, past every proxy. */
export interface NatsView extends AsyncDisposable {
  /** Messages in the stream, and records in the bucket. */
  stored(): Promise<{ readonly messages: number; readonly records: readonly string[] }>;
}

/** Port of the nats-server child below `stateDir`; null while none was chosen. */
export function natsPort(stateDir: string): number | null {
  try {
    const { nats } = JSON.parse(Deno.readTextFileSync(`${stateDir}/ports.json`)) as {
      readonly nats: number;
    };
    return nats;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Connects with the child's own password; the server may come and go. */
export function openNatsView(stateDir: string): NatsView {
  const connection = connectNats({
    servers: [`nats://127.0.0.1:${natsPort(stateDir)}`],
    user: "gdr",
    password: new Secret(Deno.readTextFileSync(`${stateDir}/nats/password`).trim()),
    credsFile: null,
    caFile: null,
    reconnectWaitMs: 200,
  }, { clock: systemClock, logger: silentLogger });
  const bucket = createBucket(connection, { clock: systemClock });
  return {
    async stored() {
      const call = { signal: AbortSignal.timeout(5_000) };
      const stream = await askApi(connection, { path: "STREAM.INFO.CI_RUNNER" }, call);
      if (stream.kind === "error") throw new Error(`Look at the stream: ${stream.description}`);
      const { messages } = stream.body["state"] as { readonly messages: number };
      const records = await bucket.list("task.*", call);
      return { messages, records: records.map(({ key }) => key) };
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
