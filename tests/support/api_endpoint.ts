import { createGateCertificate } from "../../clients/x509/gate_certificate.ts";
import type { KubernetesAccess } from "../../controller/config/config.ts";

/** One request that an {@link ApiEndpoint} got. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  readonly body: string;
  /** Remote port: tells connections apart. */
  readonly connection: number;
}

/** How an {@link ApiEndpoint} answers; it may wait as long as it likes. */
export type Answerer = (asked: Asked) => Response | Promise<Response>;

/** An HTTPS server that plays an API server, and the service account that a Pod would have for it. */
export interface ApiEndpoint extends AsyncDisposable {
  /** Access by the service account. */
  readonly access: Extract<KubernetesAccess, { kind: "service_account" }>;
  /** Every request, oldest first. */
  readonly asked: readonly Asked[];
  /** Answers from now on so. */
  answer(by: Answerer): void;
  /** Puts another token, or what else is given, in place, as kubelet does: all at once. */
  mount(files: { readonly token?: string; readonly ca?: string }): Promise<void>;
  /** Restarts the server with another certificate; gives the PEM that trusts it. */
  recertify(): Promise<string>;
}

/** Starts an {@link ApiEndpoint} whose token is `token-1`, and whose objects are all empty. */
export async function startApiEndpoint(): Promise<ApiEndpoint> {
  const directory = await Deno.makeTempDir({ prefix: "gdr-sa-" });
  const asked: Asked[] = [];
  let answerer: Answerer = () => Response.json({});
  let mounted = { token: "token-1", ca: "" };
  let generation = 0;

  const serve = async (port: number) => {
    const { certificatePem, privateKeyPem } = await createGateCertificate("127.0.0.1", Date.now());
    const server = Deno.serve({
      hostname: "127.0.0.1",
      port,
      cert: certificatePem,
      key: privateKeyPem,
      onListen() {},
      // A broken body is what some tests want.
      onError: () => new Response("broken", { status: 500 }),
    }, async (request, { remoteAddr }) => {
      const { pathname, searchParams } = new URL(request.url);
      const one: Asked = {
        method: request.method,
        path: pathname,
        query: searchParams,
        headers: request.headers,
        body: await request.text(),
        connection: remoteAddr.port,
      };
      asked.push(one);
      return await answerer(one);
    });
    return { server, ca: certificatePem, port: server.addr.port };
  };
  const mount = async (files: { readonly token?: string; readonly ca?: string }) => {
    mounted = { ...mounted, ...files };
    generation += 1;
    const folder = `..${generation}`;
    await Deno.mkdir(`${directory}/${folder}`);
    await Deno.writeTextFile(`${directory}/${folder}/token`, `${mounted.token}\n`);
    await Deno.writeTextFile(`${directory}/${folder}/ca.crt`, mounted.ca);
    await Deno.symlink(folder, `${directory}/..data_tmp`);
    await Deno.rename(`${directory}/..data_tmp`, `${directory}/..data`);
    if (generation > 1) {
      return await Deno.remove(`${directory}/..${generation - 1}`, { recursive: true });
    }
    for (const name of ["token", "ca.crt"]) {
      await Deno.symlink(`..data/${name}`, `${directory}/${name}`);
    }
  };

  let running = await serve(0);
  await mount({ ca: running.ca });
  return {
    access: { kind: "service_account", host: "127.0.0.1", port: running.port, directory },
    asked,
    answer(by) {
      answerer = by;
    },
    mount,
    async recertify() {
      await running.server.shutdown();
      running = await serve(running.port);
      return running.ca;
    },
    async [Symbol.asyncDispose]() {
      await running.server.shutdown();
      await Deno.remove(directory, { recursive: true });
    },
  };
}
