import { request } from "node:http";
import { join } from "node:path";
import { NatsContainer, type StartedNatsContainer } from "@testcontainers/nats";
import { eventually } from "./eventually.ts";
import type { NatsTestOptions, TestNats } from "./nats.ts";

const DEFAULT_IMAGE = "nats:2.12-alpine";
const PORT = 4222;

/** Outcome of an attempt to start a container. */
export type ContainerStart =
  | { readonly kind: "started"; readonly server: TestNats }
  /** No engine answers, or the image cannot be had. */
  | { readonly kind: "unavailable"; readonly why: string };

/**
 * Starts NATS with JetStream as a container (`NATS_TEST_IMAGE`, else an official image). Its store is
 * inside the container; a container that was ended is started again with it, on the same port.
 */
export async function containerServer(options: NatsTestOptions): Promise<ContainerStart> {
  // The helper container that cleans up needs an image of its own; we dispose ours ourselves.
  Deno.env.set("TESTCONTAINERS_RYUK_DISABLED", "true");
  const image = Deno.env.get("NATS_TEST_IMAGE") ?? DEFAULT_IMAGE;
  const sync = options.jetstreamSync === undefined ? "" : `sync_interval: ${options.jetstreamSync}`;
  try {
    const port = freePort();
    const container = await new NatsContainer(image)
      .withArg("--config", "/gdr.conf")
      .withExposedPorts({ container: PORT, host: port })
      .withCopyContentToContainer([{
        content: `jetstream { store_dir: "/gdr-store"\n${sync}\n}\n`,
        target: "/gdr.conf",
      }])
      .start();
    return { kind: "started", server: wrap(container, port) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { kind: "unavailable", why: `image ${image}: ${why.split("\n")[0]}` };
  }
}

function wrap(container: StartedNatsContainer, port: number): TestNats {
  const { user, pass } = container.getConnectionOptions();
  const dumps: string[] = [];
  const tell = (what: string) => engine("POST", `/containers/${container.getId()}/${what}`);
  const ended = () =>
    eventually(async () => {
      const text = await engine("GET", `/containers/${container.getId()}/json`);
      return JSON.parse(text).State.Running === false;
    }, { what: "the container to end" });
  return {
    url: `nats://127.0.0.1:${port}`,
    kind: "container",
    user: user ?? null,
    password: pass ?? null,
    storeDir: null,
    async dumpStore() {
      const dir = await Deno.makeTempDir({ prefix: "gdr-nats-dump-" });
      dumps.push(dir);
      // A tar keeps its files' bytes as they are.
      using file = await Deno.create(join(dir, "store.tar"));
      for await (const part of await container.copyArchiveFromContainer("/gdr-store")) {
        for (let rest = bytesOf(part); rest.length > 0;) {
          rest = rest.subarray(await file.write(rest));
        }
      }
      return dir;
    },
    async kill9() {
      await tell("kill?signal=KILL");
      await ended();
    },
    async stop() {
      await tell("stop?t=10");
      await ended();
    },
    async restart() {
      await tell("restart?t=10");
      await eventually(() => answers(port), { what: "NATS in the container to answer" });
    },
    async [Symbol.asyncDispose]() {
      await container.stop({ timeout: 1_000 });
      for (const dir of dumps) await Deno.remove(dir, { recursive: true });
    },
  };
}

function bytesOf(part: unknown): Uint8Array {
  if (part instanceof Uint8Array) return part;
  throw new TypeError("Read the archive: a part is not bytes");
}

async function answers(port: number): Promise<boolean> {
  using connection = await Deno.connect({ port });
  const read = await connection.read(new Uint8Array(1));
  return read === 1;
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** One request to the container engine; what the test library does not offer. */
function engine(method: string, path: string): Promise<string> {
  const host = new URL(Deno.env.get("DOCKER_HOST") ?? "unix:///var/run/docker.sock");
  const where = host.protocol === "unix:"
    ? { socketPath: host.pathname }
    : { host: host.hostname, port: Number(host.port) };
  return new Promise((resolve, reject) => {
    const call = request({ ...where, method, path, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => text += part);
      response.on("end", () => {
        const status = response.statusCode ?? 0;
        if (status < 400) resolve(text);
        else reject(new Error(`Ask the container engine ${method} ${path}: ${status} ${text}`));
      });
    });
    call.on("error", reject);
    call.end();
  });
}
