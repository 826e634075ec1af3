/** What a variable is to the parser. */
export interface Variable {
  /** Its value is never shown, and it may come from a file named by `<NAME>_FILE`. */
  readonly secret?: true;
  /** It may come from a file though it is no secret: it belongs to one. */
  readonly file?: true;
}

/** Every variable that this program reads. */
export const VARIABLES = {
  ADMIN_ADVERTISE: {},
  ADMIN_LISTEN: {},
  ADMIN_PUBLIC_URL: {},
  ADMIN_TOKENS: { secret: true },
  ALLOW_UNISOLATED: {},
  CAPABILITY_KEY: { secret: true },
  CI_RUNNER_BIN: {},
  COMPONENTS: {},
  DEFAULT_BACKEND: {},
  EXECUTORS: {},
  EXECUTOR_CAPABILITIES: {},
  FETCH_MAX_RPS: {},
  GITEA_API_TOKEN: { secret: true },
  GITEA_RUNNER_TOKEN: { secret: true },
  GITEA_RUNNER_UUID: { file: true },
  GITEA_URL: {},
  GITEA_WEBHOOK_SECRET: { secret: true },
  GITEA_ZOMBIE_TIMEOUT: {},
  HEALTH_LISTEN: {},
  HEARTBEAT_MAX_RPS: {},
  HOSTNAME: {},
  KUBECONFIG: {},
  KUBERNETES_SERVICE_ACCOUNT_DIR: {},
  KUBERNETES_SERVICE_HOST: {},
  KUBERNETES_SERVICE_PORT: {},
  LEADER_ELECTION: {},
  LOG_FORMAT: {},
  LOG_LEVEL: {},
  MAX_WAIT: {},
  METADATA_PREFIX: {},
  NATS_CA_FILE: {},
  NATS_CREDS_FILE: {},
  NATS_PASSWORD: { secret: true },
  NATS_STREAM: {},
  NATS_SUBJECT_BASE: {},
  NATS_URL: {},
  NATS_USER: { file: true },
  OIDC_CLIENT_ID: {},
  OIDC_CLIENT_SECRET: { secret: true },
  OIDC_ISSUER: {},
  OIDC_ROLE_MAP: {},
  OPENSANDBOX_API: {},
  OPENSANDBOX_API_KEY: { secret: true },
  OPENSANDBOX_POOL: {},
  OTEL_EXPORTER_OTLP_CERTIFICATE: {},
  OTEL_EXPORTER_OTLP_ENDPOINT: {},
  OTEL_EXPORTER_OTLP_HEADERS: { secret: true },
  OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: {},
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {},
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: { secret: true },
  OTEL_RESOURCE_ATTRIBUTES: {},
  OTEL_SDK_DISABLED: {},
  OTEL_SERVICE_NAME: {},
  POD_CAPACITY: {},
  POD_EXECUTOR_IMAGE: {},
  POD_EXECUTOR_UID: {},
  POD_NAMESPACE: {},
  POD_PENDING_LIMIT: {},
  POD_SERVICE_ACCOUNT: {},
  POD_SPIFFE_VOLUME: {},
  POD_TEMPLATE_FILE: {},
  PROFILE: {},
  RUNNER_FACADE_LISTEN: {},
  RUNNER_FACADE_SPIFFE_ID: {},
  RUNNER_FACADE_URL: {},
  SPIFFE_ENDPOINT_SOCKET: {},
  SPIRE_AGENT_ID: {},
  SPIRE_CLASS: {},
  SPIRE_CLUSTER: {},
  SPIRE_PARENT_ID: {},
  SPIRE_SERVER_SOCKET: {},
  STATE_DIR: {},
  TRUST_DOMAIN: {},
  VM_CAPACITY: {},
  VM_PENDING_LIMIT: {},
  VM_RUNNER_LABEL: {},
  VM_TIMEOUT_SECONDS: {},
} as const satisfies Readonly<Record<string, Variable>>;

/** Name of a variable. */
export type VariableName = keyof typeof VARIABLES;

/** What is known of a variable. */
export function variableOf(name: VariableName): Variable {
  return VARIABLES[name];
}

/** Every name that may be set, `_FILE` spellings included. */
export const KNOWN_NAMES: readonly string[] = Object.entries<Variable>(VARIABLES).flatMap(
  ([name, { secret, file }]) => secret || file ? [name, `${name}_FILE`] : [name],
);
