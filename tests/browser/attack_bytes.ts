import { ACTIONS, CORDON, FORM, JSON_BODY, type Target } from "./attack_target.ts";
import { rawRequest } from "./raw_request.ts";
import { check } from "./support.ts";

const MIB_10 = 10 * 1024 * 1024;

/** A host that is none of ours, as after a rebound name. */
export async function hosts({ port, as, untouched }: Target): Promise<void> {
  for (
    const host of ["evil.example", `evil.example:${port}`, "localhost.evil.example", "169.254.1.1"]
  ) {
    const read = await rawRequest(port, "/api/v1/status", { host, headers: as("admin") });
    const body = [new TextEncoder().encode('{"note":"x"}')];
    const act = await rawRequest(port, CORDON, {
      host,
      method: "POST",
      headers: { ...as("admin"), ...JSON_BODY, "content-length": "12" },
      body,
    });
    check(
      `wrong Host "${host}": ${read.status}, ${act.status}`,
      read.status === 421 && act.status === 421 && !read.text.includes('"backends"'),
    );
  }
  await untouched("wrong Host");
}

/** A body of 10 MiB, wherever a body is read. */
export async function sizes({ port, as, untouched }: Target): Promise<void> {
  for (const { path, form } of [...ACTIONS, { path: "/sign-in", form: true }]) {
    let sent = 0;
    const chunk = new Uint8Array(65_536).fill(0x61);
    const body = function* () {
      for (; sent < MIB_10; sent += chunk.length) yield chunk;
    };
    const answer = await rawRequest(port, path, {
      method: "POST",
      headers: { ...as("admin"), ...form ? FORM : JSON_BODY, "content-length": String(MIB_10) },
      body: { [Symbol.iterator]: body },
    });
    if (answer.status !== 413) check(`10 MB at ${path}: ${answer.status}`, false);
  }
  check(`10 MB body at ${ACTIONS.length} actions and sign-in: refused`, true);
  await untouched("10 MB bodies");
}

/** A body that does not come is answered, and nobody waits for that of a stranger. */
export async function slowBody({ port, as }: Target): Promise<void> {
  const begun = performance.now();
  const ask = (path: string, headers: Readonly<Record<string, string>>) =>
    rawRequest(port, path, {
      method: "POST",
      headers: { ...headers, "content-length": "100" },
      headOnly: true,
    });
  const [known, form, stranger] = await Promise.all([
    ask(CORDON, { ...as("admin"), ...JSON_BODY }),
    ask("/sign-in", FORM),
    ask(CORDON, JSON_BODY).then((answer) => ({ ...answer, ms: performance.now() - begun })),
  ]);
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
  check(
    `slow body: answered ${known.status} and ${form.status} after ${seconds} s`,
    known.status === 408 && form.status === 408,
  );
  check(
    `slow body of a stranger: ${stranger.status} after ${stranger.ms.toFixed(0)} ms`,
    stranger.status === 401 && stranger.ms < 5_000,
  );
}

const PATHS = [
  "//",
  "//evil.example/",
  "/\\evil.example",
  "/%5c%5cevil.example",
  "/%2f%2fevil.example",
  "/%00",
  "/%ff%fe",
  "/%",
  "/backends/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
  "/assets/../../../../etc/passwd",
  "/assets/..%2f..%2f..%2fetc%2fpasswd",
  "/assets/../api/v1/status",
  "/assets/..%2fapi%2fv1%2fstatus",
  "/healthz/../api/v1/status",
  "/healthz%2f..%2fapi/v1/status",
  "/healthz;/../api/v1/status",
  "/sign-in/../api/v1/status",
  "//api/v1/status",
  "/api//v1/status",
  "/%61pi/v1/status",
  "/API/V1/STATUS",
  "/api/v1/status#/healthz",
  "http://evil.example/api/v1/status",
  "*",
  `/${"a".repeat(15_000)}`,
  `/${"a/".repeat(7_000)}`,
];

/** Spellings of paths that lead nowhere else, show nothing to strangers and break nothing. */
export async function paths({ port, as, untouched }: Target): Promise<void> {
  const wrong: string[] = [];
  for (const path of PATHS) {
    const short = JSON.stringify(path.slice(0, 50));
    const stranger = await rawRequest(port, path);
    const data = /root:x|"leader":|"backends":/;
    if (![0, 303, 400, 401, 404, 414, 421, 431].includes(stranger.status)) {
      wrong.push(`${short}: ${stranger.status}`);
    }
    if (data.test(stranger.text)) wrong.push(`${short}: shows data`);
    const known = await rawRequest(port, path, { headers: as("admin") });
    if (known.status >= 500 || known.text.includes("root:x")) {
      wrong.push(`${short}: ${known.status} to an admin`);
    }
    for (const { head } of [stranger, known]) {
      const location = /^location: (.*)$/im.exec(head)?.[1]?.trim() ?? "/";
      if (new URL(location, "http://localhost/").host !== "localhost") {
        wrong.push(`${short}: leads to ${location}`);
      }
    }
  }
  for (
    const path of [
      "/api/v1/backends/pod/%63apacity",
      "/api/v1//backends/pod/capacity",
      "/api/v1/backends/pod/cordon/../capacity",
      "/healthz/../api/v1/backends/pod/capacity",
      "/api/v1/leader/%73tep-down",
    ]
  ) {
    const { status } = await rawRequest(port, path, {
      method: "POST",
      headers: { ...as("operator"), ...JSON_BODY, "content-length": "23" },
      body: [new TextEncoder().encode('{"note":"","capacity":1}'.slice(0, 23))],
    });
    if (![400, 403, 404, 405].includes(status)) wrong.push(`${path}: ${status}`);
  }
  check(`path tricks, ${PATHS.length + 5} of them: ${wrong.join("; ")}`, wrong.length === 0);
  await untouched("path tricks");
}

/** Line ends in what becomes a header or a redirect. */
export async function headers({ url, port, as, untouched }: Target): Promise<void> {
  const wrong: string[] = [];
  for (
    const trick of [
      "%0d%0aset-cookie:%20a=b",
      "%0aset-cookie:a=b",
      "%E5%98%8A%E5%98%8Dset-cookie:a=b",
    ]
  ) {
    for (
      const path of [
        `/sign-in?to=/${trick}`,
        `/sign-in?lang=en&to=/${trick}`,
        `/${trick}?lang=en`,
        `/?lang=${trick}`,
        `/audit/csv?actor=${trick}`,
        `/assignments/${trick}`,
      ]
    ) {
      const { status, head } = await rawRequest(port, path, { headers: as("viewer") });
      if (status >= 500 || /^set-cookie: ?a=/im.test(head)) wrong.push(`${path}: ${status}`);
    }
  }
  const note = "x\r\nset-cookie: a=b\r\n\r\n<script>document.title='owned'</script>";
  const answer = await fetch(`${url}/api/v1/backends/pod/capacity`, {
    method: "POST",
    headers: { ...as("operator"), ...JSON_BODY, "idempotency-key": "a b" },
    body: JSON.stringify({ note }),
  });
  await answer.body?.cancel();
  if (answer.status !== 400 || answer.headers.has("set-cookie")) {
    wrong.push(`key: ${answer.status}`);
  }
  check(`header injection: ${wrong.join("; ")}`, wrong.length === 0);
  await untouched("header injection");
}
