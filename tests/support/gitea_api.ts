/** A step as Gitea's job page shows it. */
export interface StepView {
  readonly name: string;
  /** success, failure, cancelled, skipped, waiting, running. */
  readonly status: string;
  /** The step's own log rows, without times. */
  readonly lines: readonly string[];
}

/** A job of a run. */
export interface JobView {
  readonly id: number;
  readonly name: string;
  /** success, failure, cancelled, skipped, waiting, running, blocked. */
  readonly status: string;
}

/** A run with its jobs. */
export interface RunView {
  readonly id: number;
  readonly status: string;
  readonly done: boolean;
  readonly event: string;
  /** Somebody with write access must let it start first. */
  readonly needsApproval: boolean;
  readonly jobs: readonly JobView[];
}

/** A file to be committed; `content` is text. */
export interface RepositoryFile {
  readonly path: string;
  readonly content: string;
}

/** A runner registered at Gitea. */
export interface RunnerView {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly labels: readonly string[];
}

/** What the tests ask of a real Gitea: REST with a token, and the web pages' JSON with a session. */
export interface GiteaApi {
  /** Any REST call; resolves to the parsed answer (null if empty). Rejects unless it is 2xx. */
  rest(method: string, path: string, body?: unknown): Promise<unknown>;
  createRepository(name: string, options: { readonly private: boolean }): Promise<void>;
  /** Commits all files in one commit that starts no run. */
  commit(repository: string, files: readonly RepositoryFile[], branch?: string): Promise<void>;
  setSecret(repository: string, name: string, value: string): Promise<void>;
  setVariable(repository: string, name: string, value: string): Promise<void>;
  /** Starts a workflow_dispatch run and resolves to its id. */
  dispatch(
    repository: string,
    workflow: string,
    inputs?: Readonly<Record<string, string>>,
  ): Promise<number>;
  /** Runs of a repository, newest first, at most 50. */
  runs(repository: string): Promise<readonly { readonly id: number; readonly event: string }[]>;
  run(repository: string, run: number): Promise<RunView>;
  /** The steps of a job with each step's own log rows, `Set up job` and `Complete job` included. */
  steps(repository: string, run: number, job: number): Promise<readonly StepView[]>;
  /** The whole log of a job, as downloaded. */
  log(repository: string, job: number): Promise<string>;
  cancel(repository: string, run: number): Promise<void>;
  approve(repository: string, run: number): Promise<void>;
  runners(): Promise<readonly RunnerView[]>;
  /** A token that registers a site-wide runner. */
  registrationToken(): Promise<string>;
  /** Makes a user with a token of its own; the same calls then act as that user. */
  createUser(name: string): Promise<GiteaApi>;
  /** Name of the user that acts. */
  readonly user: string;
}

/** Who acts, and where. */
export interface GiteaAccess {
  /** Without trailing slash. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly token: string;
  readonly signal?: AbortSignal;
}

/**
 * Makes a {@link GiteaApi}. `repository` is always `owner/name`. Everything rejects with the method,
 * the path and the beginning of the answer when Gitea does not do it, or with the signal's reason.
 *
 * The page's JSON is used for steps: in 1.26 the REST answer gives every step the result of its job.
 */
export function createGiteaApi(access: GiteaAccess): GiteaApi {
  const session = createSession(access);
  const rest = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${access.url}/api/v1${path}`, {
      method,
      headers: { authorization: `token ${access.token}`, "content-type": "application/json" },
      ...body === undefined ? {} : { body: JSON.stringify(body) },
      ...access.signal === undefined ? {} : { signal: access.signal },
    });
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`Call ${method} "${path}": ${response.status} ${text.slice(0, 300)}`);
    }
    return text === "" ? null : parseIfJson(text);
  };
  const page = async (repository: string, run: number, job: number | null, cursors: unknown) => {
    const path = `/${repository}/actions/runs/${run}${job === null ? "" : `/jobs/${job}`}`;
    return await session.post(path, { logCursors: cursors }) as RunPage;
  };
  const api: GiteaApi = {
    user: access.user,
    rest,
    async createRepository(name, options) {
      await rest("POST", "/user/repos", {
        name,
        private: options.private,
        auto_init: true,
        default_branch: "main",
      });
    },
    async commit(repository, files, branch = "main") {
      await rest("POST", `/repos/${repository}/contents`, {
        branch,
        message: "files of the test [skip ci]",
        files: files.map((file) => ({
          operation: "upload",
          path: file.path,
          content: toBase64(file.content),
        })),
      });
    },
    async setSecret(repository, name, value) {
      await rest("PUT", `/repos/${repository}/actions/secrets/${name}`, { data: value });
    },
    async setVariable(repository, name, value) {
      await rest("POST", `/repos/${repository}/actions/variables/${name}`, { value });
    },
    async dispatch(repository, workflow, inputs = {}) {
      const answer = await rest(
        "POST",
        `/repos/${repository}/actions/workflows/${workflow}/dispatches?return_run_details=true`,
        { ref: "main", inputs },
      ) as { readonly workflow_run_id: number };
      return answer.workflow_run_id;
    },
    async runs(repository) {
      const answer = await rest("GET", `/repos/${repository}/actions/runs?limit=50`) as {
        readonly workflow_runs: readonly { readonly id: number; readonly event: string }[];
      };
      return answer.workflow_runs;
    },
    async run(repository, run) {
      const { state } = await page(repository, run, null, []);
      return {
        id: run,
        status: state.run.status,
        done: state.run.done,
        event: state.run.triggerEvent,
        needsApproval: state.run.canApprove,
        jobs: state.run.jobs.map(({ id, name, status }) => ({ id, name, status })),
      };
    },
    async steps(repository, run, job) {
      const { state } = await page(repository, run, job, []);
      const cursors = state.currentJob.steps.map((_, step) => ({
        step,
        cursor: 0,
        expanded: true,
      }));
      const { logs } = await page(repository, run, job, cursors);
      return state.currentJob.steps.map((step, index) => ({
        name: step.summary,
        status: step.status,
        lines: logs.stepsLog.filter((one) => one.step === index)
          .flatMap((one) => one.lines.map((line) => line.message)),
      }));
    },
    async log(repository, job) {
      return String(await rest("GET", `/repos/${repository}/actions/jobs/${job}/logs`));
    },
    async cancel(repository, run) {
      await session.post(`/${repository}/actions/runs/${run}/cancel`, {});
    },
    async approve(repository, run) {
      await session.post(`/${repository}/actions/runs/${run}/approve`, {});
    },
    async runners() {
      const answer = await rest("GET", "/admin/actions/runners?limit=50") as {
        readonly runners: readonly {
          readonly id: number;
          readonly name: string;
          readonly status: string;
          readonly labels: readonly { readonly name: string }[];
        }[];
      };
      return answer.runners.map((one) => ({
        id: one.id,
        name: one.name,
        status: one.status,
        labels: one.labels.map((label) => label.name),
      }));
    },
    async registrationToken() {
      const answer = await rest("POST", "/admin/actions/runners/registration-token") as {
        readonly token: string;
      };
      return answer.token;
    },
    async createUser(name) {
      const password = `password-of-${name}-1`;
      await rest("POST", "/admin/users", {
        username: name,
        email: `${name}@example.com`,
        password,
        must_change_password: false,
      });
      const response = await fetch(`${access.url}/api/v1/users/${name}/tokens`, {
        method: "POST",
        headers: {
          authorization: `Basic ${btoa(`${name}:${password}`)}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({ name: "test", scopes: ["all"] }),
        ...access.signal === undefined ? {} : { signal: access.signal },
      });
      const answer = await response.json() as { readonly sha1: string };
      return createGiteaApi({ ...access, user: name, password, token: answer.sha1 });
    },
  };
  return api;
}

/** JSON of `POST /{owner}/{repo}/actions/runs/{run}[/jobs/{job}]` (Gitea 1.26, routers/web). */
interface RunPage {
  readonly state: {
    readonly run: {
      readonly status: string;
      readonly done: boolean;
      readonly triggerEvent: string;
      readonly canApprove: boolean;
      readonly jobs: readonly JobView[];
    };
    readonly currentJob: {
      readonly steps: readonly { readonly summary: string; readonly status: string }[];
    };
  };
  readonly logs: {
    readonly stepsLog: readonly {
      readonly step: number;
      readonly lines: readonly { readonly message: string }[];
    }[];
  };
}

/** A browser's session without the browser: signs in at the first call and keeps the cookies. */
function createSession(access: GiteaAccess) {
  const cookies = new Map<string, string>();
  let signedIn: Promise<void> | undefined;
  const send = async (path: string, body: BodyInit | null, type: string) => {
    const response = await fetch(`${access.url}${path}`, {
      method: body === null ? "GET" : "POST",
      redirect: "manual",
      headers: {
        "content-type": type,
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      },
      ...body === null ? {} : { body },
      ...access.signal === undefined ? {} : { signal: access.signal },
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ""] = cookie.split(";", 1);
      const [name = "", ...value] = pair.split("=");
      cookies.set(name, value.join("="));
    }
    return { status: response.status, text: await response.text() };
  };
  const signIn = async () => {
    await send("/user/login", null, "text/html");
    const form = new URLSearchParams({ user_name: access.user, password: access.password });
    const { status } = await send("/user/login", form, "application/x-www-form-urlencoded");
    if (status !== 303 && status !== 302) {
      throw new Error(`Sign in as "${access.user}": Gitea answered ${status}`);
    }
  };
  return {
    async post(path: string, body: unknown): Promise<unknown> {
      signedIn ??= signIn();
      await signedIn;
      const { status, text } = await send(path, JSON.stringify(body), "application/json");
      if (status !== 200) throw new Error(`Post "${path}": ${status} ${text.slice(0, 300)}`);
      return JSON.parse(text);
    },
  };
}

function parseIfJson(text: string): unknown {
  if (!/^\s*[[{"]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function toBase64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
