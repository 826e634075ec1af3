/**
 * Every workflow run of the end-to-end tests and how it must end at Gitea: the run, each job, each
 * step, and each step's own log rows. The files are in `workflows/`.
 *
 * In rows `{root}` stands for Gitea's ROOT_URL and `{spiffe}` for the identity of the job, `none`
 * where the official runner works by itself.
 */

/** How a run, job or step ends. */
export type Ending = "success" | "failure" | "cancelled" | "skipped";

/** A step; `lines` are exactly its own rows, without the runner's frame of it. */
export interface StepExpectation {
  readonly name: string;
  readonly ending: Ending;
  readonly lines: readonly string[];
}

/** A job; no steps when it never had a runner. */
export interface JobExpectation {
  readonly name: string;
  readonly ending: Ending;
  readonly steps: readonly StepExpectation[];
  /**
   * Why the product does not take the job, in the words of its log. It then ends as failed, with no
   * step having run; the official runner knows no such rule.
   */
  readonly refused?: string;
}

/** How a run comes about. */
export type Start =
  | { readonly kind: "dispatch"; readonly inputs?: Readonly<Record<string, string>> }
  /** A push to the main branch of the public repository. */
  | { readonly kind: "push" }
  /** From a branch of the public repository itself. */
  | { readonly kind: "pull_request" }
  /** From a stranger's fork of the public repository; a maintainer lets it run. */
  | { readonly kind: "fork_pull_request" };

/** What is done to a run after its start. */
export type Steering =
  /** Cancelled once its first row is in the log. */
  | "cancel_running"
  /** Cancelled while nobody takes it. */
  | "cancel_waiting"
  /** Run again when it has ended, and looked at then. */
  | "rerun";

/** One run. */
export interface Scenario {
  readonly name: string;
  /** File without `.yaml`. */
  readonly workflow: string;
  readonly start: Start;
  readonly steering?: Steering;
  readonly ending: Ending;
  readonly jobs: readonly JobExpectation[];
  /** Identity of its jobs, `{job}` standing for the job key; checked at the product. */
  readonly identity: string;
}

const trusted = "spiffe://example.org/ci/peeradmin/e2e/{job}";

/** The runs, in the order in which they are started: the slowest first. */
export const scenarios: readonly Scenario[] = [
  dispatched("step time-out", "step_time_out", "failure", [
    job("slow", "failure", [
      step("too slow", "failure", [
        "waiting for too long",
        "##[error]this step has been cancelled: Process completed with exit code -1.",
      ]),
      step("never", "skipped", []),
    ]),
  ]),
  {
    ...dispatched("wrong runs-on: a label that nobody has", "wrong_runs_on_unknown", "cancelled", [
      job("waits", "cancelled", []),
    ]),
    steering: "cancel_waiting",
  },
  dispatched("success", "success", "success", [
    job("greet", "success", [
      step("first", "success", ["one of first", "two of first"]),
      step("second", "success", ["one of second", "two of second"]),
      step("third", "success", ["only of third"]),
    ]),
  ]),
  {
    ...dispatched("success, run again", "success", "success", [
      job("greet", "success", [
        step("first", "success", ["one of first", "two of first"]),
        step("second", "success", ["one of second", "two of second"]),
        step("third", "success", ["only of third"]),
      ]),
    ]),
    steering: "rerun",
  },
  dispatched("failure", "failure", "failure", [
    job("break", "failure", [
      step("before", "success", ["before the failure"]),
      step("fails", "failure", ["about to fail", "##[error]Process completed with exit code 3."]),
      step("never", "skipped", []),
      step("on failure", "success", ["cleaning up after the failure"]),
    ]),
  ]),
  dispatched("continue-on-error", "continue_on_error", "success", [
    job("forgive", "success", [
      step("forgiven", "failure", [
        "failing, but allowed to",
        "##[error]Process completed with exit code 1.",
      ]),
      step("after", "success", ["outcome failure, conclusion success"]),
    ]),
  ]),
  dispatched(
    "matrix of 10",
    "matrix",
    "success",
    ["a", "b", "c", "d", "e"].flatMap((letter) =>
      [1, 2].map((number) =>
        job(`cell (${letter}, ${number})`, "success", [
          step("show", "success", [`cell ${letter}${number}`]),
        ])
      )
    ),
  ),
  dispatched("needs with outputs", "needs_outputs", "success", [
    job("make", "success", [step("choose", "success", [])]),
    job("use", "success", [
      step("show", "success", ["colour green, make ended with success", "upper", "lower"]),
    ]),
  ]),
  dispatched("needs of a failed job, if: always() on a job", "needs_failed", "failure", [
    job("breaks", "failure", [
      step("break", "failure", ["breaking", "##[error]Process completed with exit code 1."]),
    ]),
    job("depends", "skipped", []),
    job("always", "success", [step("look", "success", ["breaks ended with failure"])]),
  ]),
  dispatched("if: always() on a step", "always", "failure", [
    job("sweep", "failure", [
      step("break", "failure", ["breaking", "##[error]Process completed with exit code 1."]),
      step("never", "skipped", []),
      step("sweep", "success", ["sweeping with job status failure"]),
    ]),
  ]),
  dispatched("secrets and vars", "secrets_and_vars", "success", [
    job("read", "success", [
      step("variable", "success", ["colour of the house is blue"]),
      step("secret", "success", [
        "the code has 16 characters",
        "in the log it is ***",
        // SHA-256 of the secret: the job had the very value.
        "ee0a73337db04d4c",
      ]),
      step("absent", "success", ["absent secret is [], absent variable is []"]),
    ]),
  ]),
  dispatched("5,000 log rows", "long_log", "success", [
    job("talk", "success", [
      step("short", "success", ["before the flood"]),
      step("flood", "success", Array.from({ length: 5000 }, (_, i) => `row ${i + 1} of 5000`)),
      step("after", "success", ["after the flood"]),
    ]),
  ]),
  dispatched("odd log rows", "odd_lines", "success", [
    job("odd", "success", [
      step("unicode", "success", ["Grüße, 世界, 🚀"]),
      step("blank", "success", ["above", "", "below"]),
      step("commands", "success", ["masked *** here", "::warning::careful"]),
      // Gitea cuts a row at 64 KiB.
      step("long", "success", ["0".repeat(65_536)]),
    ]),
  ]),
  dispatched("output of 1 MiB", "big_output", "success", [
    job("make", "success", [step("make", "success", ["made an output of 1 MiB"])]),
    job("use", "success", [step("measure", "success", ["1048576"])]),
  ]),
  dispatched("runs-on: one string", "runs_on_string", "success", [
    job("anywhere", "success", [step("show", "success", ["placed by one string"])]),
  ]),
  dispatched("runs-on: a list", "runs_on_list", "success", [
    job("listed", "success", [step("show", "success", ["placed by a list"])]),
  ]),
  dispatched("runs-on: a machine", "runs_on_vm", "success", [
    job("machine", "success", [step("show", "success", ["placed on a machine"])]),
  ]),
  dispatched("runs-on: an object", "runs_on_object", "success", [
    job("grouped", "success", [step("show", "success", ["placed by an object"])]),
  ]),
  {
    ...dispatched("runs-on: expressions", "runs_on_expression", "success", [
      job("computed (pod)", "success", [
        step("show", "success", ["computed pod, asked for here"]),
      ]),
      job("computed (vm)", "success", [step("show", "success", ["computed vm, asked for here"])]),
    ]),
    start: { kind: "dispatch", inputs: { where: "here" } },
  },
  dispatched("wrong runs-on: no self-hosted", "wrong_runs_on_no_self_hosted", "success", [
    {
      ...job("misplaced", "success", [step("show", "success", ["ran without self-hosted"])]),
      refused: "task runs-on labels must include self-hosted",
    },
  ]),
  dispatched("wrong runs-on: pod and vm", "wrong_runs_on_both", "success", [
    {
      ...job("torn", "success", [step("show", "success", ["ran on both"])]),
      refused: "task runs-on labels must select exactly one of pod or vm",
    },
  ]),
  dispatched("more than NATS carries in one message", "too_big", "success", [
    job("make", "success", [
      step("make", "success", ["made two outputs that no compression makes smaller"]),
    ]),
    {
      ...job("use", "success", [step("use", "success", ["make ended with success"])]),
      refused: "bytes",
    },
  ]),
  dispatched("repository-local actions", "local_action", "success", [
    job("act", "success", [
      step("clone", "success", []),
      step("composite", "success", ["hello, the house", "server of the composite {root}"]),
      step("node", "success", ["note: written by node"]),
      step("result", "success", ["greeting was hello, the house, note was written by node"]),
    ]),
  ]),
  dispatched("an action of a private repository", "remote_action", "success", [
    job("act", "success", [
      step("from gitea", "success", ["hello, the neighbours", "server of the composite {root}"]),
      step("result", "success", ["greeting was hello, the neighbours"]),
    ]),
  ]),
  dispatched("checkout of the own repository", "checkout", "success", [
    job("clone", "success", [
      step("without token", "success", ["closed to strangers"]),
      step("with token", "success", ["the commit of the run", "alpha", "beta", "gamma"]),
    ]),
  ]),
  dispatched("calls to GITHUB_API_URL", "api_call", "success", [
    job("ask", "success", [
      step("curl", "success", ["default branch main"]),
      step("python", "success", ["size of words.txt 17"]),
    ]),
  ]),
  ...(["v3", "v4"] as const).map((protocol) =>
    dispatched(`artifact round trip, ${protocol}`, `artifact_${protocol}`, "success", [
      job("upload", "success", [
        step("clone", "success", []),
        step("upload", "success", [`uploaded 29 bytes by ${protocol}`]),
      ]),
      job("download", "success", [
        step("clone", "success", []),
        step("download", "success", [`downloaded by ${protocol}: kept from one job to the next`]),
      ]),
    ])
  ),
  dispatched("addresses that jobs see", "urls", "success", [
    job("look", "success", [
      step("environment", "success", [
        "server {root}",
        "api {root}/api/v1",
        "runtime {root}/api/actions_pipeline/",
        "results {root}",
      ]),
      step("contexts", "success", [
        "github.server_url {root}",
        "gitea.server_url {root}",
        "github.api_url {root}/api/v1",
      ]),
      step("proxies", "success", ["no proxy is set"]),
      step("credentials", "success", ["no credential of the runner is set"]),
    ]),
  ]),
  dispatched("files between steps", "step_files", "success", [
    job("files", "success", [
      step("write", "success", []),
      step("read", "success", [
        "answer 42, file yes, level step",
        "in inner",
        "found on the path",
      ]),
      step("python", "success", ["level job"]),
    ]),
  ]),
  {
    ...dispatched("cancelled by its user", "cancelled", "cancelled", [
      job("endless", "cancelled", [
        step("wait", "cancelled", ["waiting to be cancelled"]),
        step("never", "cancelled", []),
      ]),
    ]),
    steering: "cancel_running",
  },
  dispatched("identity of a job", "identity", "success", [
    job("who-am-i", "success", [
      step("name", "success", ["spiffe {spiffe}"]),
      step("certificate", "success", ["certificate {spiffe}"]),
    ]),
  ]),
  {
    name: "push",
    workflow: "push",
    start: { kind: "push" },
    ending: "success",
    jobs: [
      job("pushed", "success", [step("show", "success", ["event push on main, spiffe {spiffe}"])]),
    ],
    identity: "spiffe://example.org/ci/peeradmin/open/{job}",
  },
  {
    name: "pull request from a branch",
    workflow: "pull_request",
    start: { kind: "pull_request" },
    ending: "success",
    jobs: [
      job("review", "success", [
        step("show", "success", [
          "event pull_request, head feature of peeradmin/open",
          "secret is [***]",
          "spiffe {spiffe}",
        ]),
      ]),
    ],
    identity: "spiffe://example.org/ci/peeradmin/open/{job}",
  },
  {
    name: "pull request from a fork",
    workflow: "pull_request",
    start: { kind: "fork_pull_request" },
    ending: "success",
    jobs: [
      job("review", "success", [
        step("show", "success", [
          "event pull_request, head idea of stranger/open",
          "secret is []",
          "spiffe {spiffe}",
        ]),
      ]),
    ],
    identity: "spiffe://example.org/ci-fork/peeradmin/open/{job}",
  },
];

/** Runs for a product without `DEFAULT_BACKEND`. */
export const bareScenarios: readonly Scenario[] = [
  dispatched("wrong runs-on: self-hosted alone", "runs_on_string", "success", [
    {
      ...job("anywhere", "success", [step("show", "success", ["placed by one string"])]),
      refused: "task runs-on labels must select exactly one of pod or vm",
    },
  ]),
];

function dispatched(
  name: string,
  workflow: string,
  ending: Ending,
  jobs: readonly JobExpectation[],
): Scenario {
  return { name, workflow, start: { kind: "dispatch" }, ending, jobs, identity: trusted };
}

function job(name: string, ending: Ending, steps: readonly StepExpectation[]): JobExpectation {
  return { name, ending, steps };
}

function step(name: string, ending: Ending, lines: readonly string[]): StepExpectation {
  return { name, ending, lines };
}
