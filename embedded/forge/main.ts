import { parseArgs } from "node:util";
import { systemClock } from "../../lib/clock.ts";
import { createForge } from "./forge.ts";
import { parseJobFile } from "./job_file.ts";
import { forgeHandler } from "./server.ts";
import { createFileStore } from "./store.ts";

/**
 * The sample forge as a program of its own.
 *
 *   main.ts --state DIR [--port 0] [--jobs FILE] [--host NAME]
 *
 * Serves on 127.0.0.1 only. Prints one JSON line `{"url", "registrationToken"}` when it answers;
 * ends on SIGTERM and SIGINT. `--host` is its name in the URLs that jobs see. The default is
 * `127.1`, another spelling of 127.0.0.1: programs written in Go, the official runner among them,
 * skip every proxy for the usual one, and the executor's gate is such a proxy.
 */
async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      state: { type: "string" },
      port: { type: "string", default: "0" },
      jobs: { type: "string", default: new URL("./jobs.yaml", import.meta.url).pathname },
      host: { type: "string", default: "127.1" },
    },
  });
  if (values.state === undefined) {
    throw new Error("Cannot start the sample forge: --state is missing");
  }
  const runs = parseJobFile(await Deno.readTextFile(values.jobs));
  const stop = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(name, () => stop.abort());
  }
  // The URL is part of every task, and the port may be known only after listening.
  let handle: (request: Request) => Promise<Response> = () =>
    Promise.resolve(new Response("starting\n", { status: 503 }));
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: Number(values.port),
    signal: stop.signal,
    onListen: () => {},
  }, (request) => handle(request));
  const url = `http://${values.host}:${server.addr.port}`;
  const forge = createForge({
    store: createFileStore(values.state),
    clock: systemClock,
    serverUrl: `${url}/`,
  });
  if (forge.jobs().every((job) => job.result !== null)) forge.dispatch(runs);
  const ready = { url, registrationToken: forge.registrationToken };
  // Before the first answer: whoever has got one looks for the line at once.
  Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(ready) + "\n"));
  handle = forgeHandler(forge);
  await server.finished;
}

if (import.meta.main) await main(Deno.args);
