/**
 * Starts the program without any configuration by the command given as arguments, waits for the page
 * and for the sample jobs to end, stops it as Ctrl-C does, and looks for what is left. Prints one
 * line per check and `N passed, N failed, N skipped`; exit code 1 when a check failed.
 */
const PAGE_MS = 120_000;
const JOBS_MS = 60_000;
const STOP_MS = 12_000;

const results = { passed: 0, failed: 0 };
const [command = "", ...args] = Deno.args;
const state = await Deno.makeTempDir({ prefix: "gdr-start-" });
const port = freePort();
const origin = `http://127.0.0.1:${port}`;
const mark = crypto.randomUUID();

// A session of its own, so that the signal reaches the whole foreground group, as a terminal sends it.
const child = new Deno.Command("setsid", {
  args: [command, ...args],
  env: { STATE_DIR: state, ADMIN_LISTEN: `127.0.0.1:${port}`, GDR_MARK: mark },
  stdin: "null",
  stdout: "inherit",
  stderr: "inherit",
}).spawn();
let ended = false;
const exited = child.status.then((status) => {
  ended = true;
  return status;
});

try {
  const up = await until(PAGE_MS, async () => (await page("/")).includes("</html>"));
  check(`the page is up${up === null ? "" : ` after ${up} ms`}`, up !== null);
  const done = up === null ? null : await until(JOBS_MS, async () => {
    const jobs = await assignments();
    return jobs.length >= 3 && jobs.every((job) => job.state === "cleaned");
  });
  const jobs = await assignments().catch(() => []);
  check(
    `${jobs.length} sample jobs are cleaned${done === null ? "" : ` after ${done} ms`}`,
    done !== null,
  );
  if (done === null) say(JSON.stringify(jobs, null, 1).slice(0, 4000));
  const broken: string[] = [];
  for (const { id } of jobs) {
    const { events } = JSON.parse(await page(`/api/v1/assignments/${id}`)) as {
      events: { event: string }[];
    };
    const names = events.map(({ event }) => event);
    if (names[0] !== "received" || names.at(-1) !== "cleaned") broken.push(`${id}: ${names}`);
  }
  check(`every timeline goes from received to cleaned ${broken.join("; ")}`, broken.length === 0);
  for (const path of ["/healthz", "/readyz", "/metrics"]) {
    const status = await fetch(origin + path).then(async (response) => {
      await response.body?.cancel();
      return response.status;
    }).catch(String);
    check(`${path} answers 200 (it answered ${status})`, status === 200);
  }
} finally {
  const started = performance.now();
  if (!ended) Deno.kill(-child.pid, "SIGINT");
  await Promise.race([exited, sleep(STOP_MS)]);
  const left = await until(STOP_MS - (performance.now() - started), () => remains().length === 0);
  const took = Math.round(performance.now() - started);
  check(
    `Ctrl-C ends it and all it started within ${STOP_MS} ms: ${took} ms`,
    ended && left !== null,
  );
  for (const pid of remains()) {
    say(`left: ${pid} ${read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").slice(0, 200)}`);
    Deno.kill(pid, "SIGKILL");
  }
  await Deno.remove(state, { recursive: true });
}
say(`${results.passed} passed, ${results.failed} failed, 0 skipped`);
Deno.exit(results.failed === 0 ? 0 : 1);

/** Processes that carry our mark in their environment, or our state folder in their command. */
function remains(): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name))
    .filter((pid) => pid > 0 && pid !== Deno.pid)
    .filter((pid) =>
      read(`/proc/${pid}/environ`).includes(mark) || read(`/proc/${pid}/environ`).includes(state) ||
      read(`/proc/${pid}/cmdline`).includes(state)
    );
}

function read(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    // Gone meanwhile, or not ours to read.
    return "";
  }
}

async function assignments(): Promise<{ id: string; state: string }[]> {
  return (JSON.parse(await page("/api/v1/assignments?limit=100"))).items;
}

async function page(path: string): Promise<string> {
  const response = await fetch(origin + path, { signal: AbortSignal.timeout(5_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${text.slice(0, 200)}`);
  return text;
}

/** Milliseconds until `holds` is true; null when it is not within `ms`. */
async function until(ms: number, holds: () => boolean | Promise<boolean>): Promise<number | null> {
  const started = performance.now();
  do {
    try {
      if (await holds()) return Math.round(performance.now() - started);
    } catch {
      // Not there yet.
    }
    await sleep(100);
  } while (performance.now() - started < ms && !(ended && ms > STOP_MS));
  return null;
}

function check(what: string, holds: boolean): void {
  results[holds ? "passed" : "failed"]++;
  say(`${holds ? "ok    " : "FAILED"} ${what}`);
}

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}
