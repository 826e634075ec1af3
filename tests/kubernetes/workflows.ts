import type { RepositoryFile } from "../support/gitea_api.ts";

const job = (name: string, steps: string) => ({
  path: `.gitea/workflows/${name}.yaml`,
  content: `on:
  workflow_dispatch:
jobs:
  ${name}:
    runs-on: [self-hosted, pod]
    steps:
${steps}`,
});

const quick = (name: string) =>
  job(
    name,
    `      - name: quick
        run: echo "quick"
`,
  );

/** Says when it has begun, then runs until it is ended. */
const long = (name: string) =>
  job(
    name,
    `      - name: long
        run: |
          echo "it has begun"
          sleep 600
`,
  );

/** Jobs that start badly, and jobs that end badly: their keys say how. */
export const BEFORE_CLAIM = [
  "before-image-pull",
  "before-unschedulable",
  "before-eviction",
  "before-shutdown",
  "before-oom",
  "before-node-gone",
  "before-deleted",
] as const;
/** The same for what happens when its job runs. */
export const AFTER_CLAIM = [
  "after-eviction",
  "after-shutdown",
  "after-oom",
  "after-node-gone",
  "after-deleted",
] as const;

/** Jobs of `many.yaml`. */
export const MANY_JOBS = 50;

/** A matrix of jobs that tell a counter outside when they begin and end, and run until it lets them go. */
const many: RepositoryFile = {
  path: ".gitea/workflows/many.yaml",
  content: `on:
  workflow_dispatch:
    inputs:
      counter:
        required: true
jobs:
  many:
    strategy:
      matrix:
        number: [${Array.from({ length: MANY_JOBS }, (_, index) => index).join(", ")}]
    runs-on: [self-hosted, pod]
    steps:
      - run: |
          curl -fsS -X POST "\${{ inputs.counter }}/begin/\${{ matrix.number }}"
          curl -fsS "\${{ inputs.counter }}/hold"
          curl -fsS -X POST "\${{ inputs.counter }}/end/\${{ matrix.number }}"
`,
};

/** Workflows of this suite, one job each, named as the file. */
export const WORKFLOWS: readonly RepositoryFile[] = [
  many,
  // The identity that SPIRE gives the step, and that the step cannot see what belongs to the gate.
  job(
    "hello",
    `      - name: hello
        run: |
          echo "user $(id -u), identity $CI_SPIFFE_ID"
          spire-agent api fetch x509 -socketPath "\${SPIFFE_ENDPOINT_SOCKET#unix://}" | grep "SPIFFE ID"
          env | grep -c CAPABILITY || echo "no capability"
          git ls-remote "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY" HEAD >/dev/null && echo "Gitea answers"
`,
  ),
  ...["quick", "before-quota", "sidecar", ...BEFORE_CLAIM].map(quick),
  ...["long", "other", ...AFTER_CLAIM].map(long),
];
