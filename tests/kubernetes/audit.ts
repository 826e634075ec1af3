import { isObject } from "../../lib/json_object.ts";
import { at } from "../support/kube_manifests.ts";

/** One request that the API server has answered, from its audit log. */
export interface AuditRecord {
  readonly user: string;
  readonly verb: string;
  /** `pods`, `pods/status`, `leases`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
  /** When it was answered, ms since the epoch. */
  readonly at: number;
  /** When it came, ms since the epoch. */
  readonly receivedAt: number;
  readonly userAgent: string;
}

/** The API server's own record of what service accounts did. */
export interface Audit extends AsyncDisposable {
  /** Variables of the peers' scripts that turn it on. */
  readonly env: Readonly<Record<string, string>>;
  records(): Promise<AuditRecord[]>;
}

/** Prepares an audit log; the API server is to be started with its `env`. */
export async function createAudit(): Promise<Audit> {
  const folder = await Deno.makeTempDir({ prefix: "gdr-audit-" });
  const policy = `${folder}/policy.yaml`;
  const file = `${folder}/audit.log`;
  await Deno.writeTextFile(
    policy,
    JSON.stringify({
      apiVersion: "audit.k8s.io/v1",
      kind: "Policy",
      omitStages: ["RequestReceived", "ResponseStarted"],
      rules: [
        { level: "Metadata", userGroups: ["system:serviceaccounts"] },
        { level: "None" },
      ],
    }),
  );
  return {
    env: { APISERVER_EXTRA: `--audit-policy-file=${policy} --audit-log-path=${file}` },
    async records() {
      const text = await Deno.readTextFile(file).catch(() => "");
      return text.split("\n").flatMap((line) => {
        const one: unknown = line === "" ? undefined : JSON.parse(line);
        return isObject(one) ? [recordOf(one)] : [];
      });
    },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

function recordOf(one: Readonly<Record<string, unknown>>): AuditRecord {
  const text = (...path: string[]) => String(at(one, ...path) ?? "");
  const subresource = text("objectRef", "subresource");
  return {
    user: text("user", "username"),
    verb: text("verb"),
    resource: text("objectRef", "resource") + (subresource === "" ? "" : `/${subresource}`),
    namespace: text("objectRef", "namespace"),
    name: text("objectRef", "name"),
    code: Number(at(one, "responseStatus", "code") ?? 0),
    at: Date.parse(text("stageTimestamp")),
    receivedAt: Date.parse(text("requestReceivedTimestamp")),
    userAgent: text("userAgent"),
  };
}
