import type { RepositoryFile } from "../support/gitea_api.ts";

const job = (name: string, steps: string, inputs = "") => ({
  path: `.gitea/workflows/${name}.yaml`,
  content: `on:
  workflow_dispatch:${inputs}
jobs:
  ${name}:
    runs-on: [self-hosted, pod]
    steps:
${steps}`,
});

/** Workflows of this suite, one job each, named as the file. */
export const WORKFLOWS: readonly RepositoryFile[] = [
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
  job(
    "quick",
    `      - name: quick
        run: echo "quick"
`,
  ),
  // Runs until it is ended, and says when it has begun.
  job(
    "long",
    `      - name: long
        run: |
          echo "it has begun"
          sleep \${{ inputs.seconds }}
`,
    "\n    inputs:\n      seconds:\n        default: '600'",
  ),
];
