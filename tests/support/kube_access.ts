import { run } from "./process.ts";

/** The API server of a test run, and how the TEST itself acts on it: with every right. */
export interface KubeAccess {
  /** `https://127.0.0.1:<port>`, without a trailing slash. */
  readonly url: string;
  readonly port: number;
  readonly caFile: string;
  /** Client certificate of `system:masters`: for the test, never for what is tested. */
  readonly adminKubeconfig: string;
  readonly adminCertificate: { readonly certFile: string; readonly keyFile: string };
  /** Where SPIRE's k8s attestor looks for the kubelet's read-only `/pods`. */
  readonly kubeletPort: number;
  /** Runs kubectl as administrator and resolves to what it printed, trimmed. */
  kubectl(args: readonly string[], options?: { readonly stdin?: string }): Promise<string>;
  /** A token of that service account from the TokenRequest API; valid an hour by default. */
  token(namespace: string, serviceAccount: string, seconds?: number): Promise<string>;
  /**
   * Writes a kubeconfig of that service account and resolves to its path. The token is in a file beside
   * it (`<path>.token`). `server` in place of the API server's own address: a proxy of the test.
   */
  kubeconfig(
    file: string,
    who: { readonly namespace: string; readonly serviceAccount: string; readonly server?: string },
  ): Promise<string>;
  /** Lays what a Pod of that service account would find below `prefix`, and names its variables. */
  inCluster(
    prefix: string,
    who: { readonly namespace: string; readonly serviceAccount: string },
  ): Promise<Readonly<Record<string, string>>>;
}

/** Makes a {@link KubeAccess}. Without `present` every call rejects: the run has no API server. */
export function createKubeAccess(options: {
  readonly present: boolean;
  readonly bin: string;
  /** Where the script keeps kubeconfig and certificates. */
  readonly folder: string;
  readonly port: number;
  readonly kubeletPort: number;
  readonly signal?: AbortSignal;
}): KubeAccess {
  const { present, bin, folder, port } = options;
  const shown = (text: string) => present ? text : "";
  const url = shown(`https://127.0.0.1:${port}`);
  const caFile = shown(`${folder}/pki/ca.crt`);
  const adminKubeconfig = shown(`${folder}/admin.kubeconfig`);
  const access: KubeAccess = {
    url,
    port,
    caFile,
    adminKubeconfig,
    adminCertificate: {
      certFile: shown(`${folder}/pki/admin.crt`),
      keyFile: shown(`${folder}/pki/admin.key`),
    },
    kubeletPort: options.kubeletPort,
    async kubectl(args, { stdin } = {}) {
      if (!present) throw new Error('Run kubectl: ask startPeers for "kube"');
      const file = stdin === undefined ? undefined : await Deno.makeTempFile({ suffix: ".yaml" });
      try {
        if (file !== undefined) await Deno.writeTextFile(file, stdin ?? "");
        const input = file === undefined ? [] : ["-f", file];
        const { stdout } = await run(`${bin}/kubectl`, [
          `--kubeconfig=${adminKubeconfig}`,
          ...args,
          ...input,
        ], options.signal === undefined ? {} : { signal: options.signal });
        return stdout.trim();
      } finally {
        if (file !== undefined) await Deno.remove(file);
      }
    },
    token(namespace, serviceAccount, seconds = 3600) {
      const what = ["create", "token", serviceAccount, "-n", namespace];
      return access.kubectl([...what, `--duration=${seconds}s`]);
    },
    async kubeconfig(file, { namespace, serviceAccount, server = url }) {
      const tokenFile = `${file}.token`;
      await Deno.writeTextFile(tokenFile, await access.token(namespace, serviceAccount), {
        mode: 0o600,
      });
      await Deno.writeTextFile(file, kubeconfigText({ namespace, server, caFile, tokenFile }), {
        mode: 0o600,
      });
      return file;
    },
    async inCluster(prefix, { namespace, serviceAccount }) {
      const place = `${prefix}/var/run/secrets/kubernetes.io/serviceaccount`;
      await Deno.mkdir(place, { recursive: true });
      await Deno.copyFile(caFile, `${place}/ca.crt`);
      await Deno.writeTextFile(`${place}/namespace`, namespace);
      await Deno.writeTextFile(`${place}/token`, await access.token(namespace, serviceAccount));
      return { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: String(port) };
    },
  };
  return access;
}

function kubeconfigText(of: {
  readonly namespace: string;
  readonly server: string;
  readonly caFile: string;
  readonly tokenFile: string;
}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{
      name: "test",
      cluster: { server: of.server, "certificate-authority": of.caFile },
    }],
    users: [{ name: "test", user: { tokenFile: of.tokenFile } }],
    contexts: [{
      name: "test",
      context: { cluster: "test", user: "test", namespace: of.namespace },
    }],
  });
}
