import { createHash } from "node:crypto";
import type { Browser, BrowserContext } from "playwright-core";
import type { AuditView, BackendView } from "../../controller/views/views.ts";
import { createControllerPlace, startController } from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { PATIENCE } from "./forms.ts";
import { headers, hosts, paths, sizes, slowBody } from "./attack_bytes.ts";
import {
  ACTIONS,
  CORDON,
  FORM,
  JSON_BODY,
  type Role,
  ROLES,
  SCRIPT,
  type Target,
  tokenOf,
} from "./attack_target.ts";
import type { Grounds } from "./grounds.ts";
import { inspect, LIGHT, PAGES } from "./looks.ts";
import { check, freePort, openPage } from "./support.ts";

/** Attacks on a real controller that has people, tokens and a job of a real Gitea whose texts are scripts. */
export async function attacks(browser: Browser, folder: string, grounds: Grounds): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const place = await grounds.place("attacked", {
    hostile: {
      hostile: {
        label: "pod",
        name: SCRIPT,
        script: `echo '${SCRIPT.replaceAll("'", "")}'; exit 1`,
      },
    },
  });
  const home = stack.use(await createControllerPlace());
  const port = freePort();
  const url = `http://localhost:${port}`;
  const controller = stack.use(
    await startController({
      stateDir: home.stateDir,
      env: {
        ...place.env,
        ADMIN_LISTEN: `127.0.0.1:${port}`,
        ADMIN_TOKENS: ROLES.map((role) =>
          `a-${role}:${role}:${createHash("sha256").update(tokenOf(role)).digest("hex")}`
        ).join("\n"),
      },
    }),
  );
  await controller.url();
  const as = (role: Role) => ({ authorization: `Bearer ${tokenOf(role)}` });
  const read = async <T>(path: string): Promise<T> =>
    await (await fetch(`${url}/api/v1/${path}`, { headers: as("admin") })).json();
  const audit = async (query: string) =>
    (await read<{ readonly items: readonly AuditView[] }>(`audit?limit=200&${query}`)).items;
  await eventually(async () => (await read<{ leading: boolean }>("leader")).leading, {
    what: "the controller to lead",
    timeoutMs: 60_000,
  });
  const target: Target = {
    ...{ browser, folder, url, port, place, as, audit },
    async untouched(what) {
      const { cordoned, drain } = await read<BackendView>("backends/pod");
      const done = (await audit("result=done")).length;
      check(`${what}: nothing was done`, cordoned === null && drain === null && done === 0);
    },
  };
  const slow = slowBody(target);
  await foreignOrigin(target);
  await proofs(target);
  await methodsAndTypes(target);
  await roles(target);
  await hosts(target);
  await sizes(target);
  await paths(target);
  await headers(target);
  await redirects(target);
  await slow;
  await target.untouched("all attacks so far");
  await storedScripts(target);
}

/** Signs in at the page, as people do. */
async function signedIn(
  { url }: Target,
  context: BrowserContext,
  { role, to = "/backends/pod" }: { readonly role: Role; readonly to?: string },
) {
  const page = await openPage(context, `${url}/sign-in?to=${encodeURIComponent(to)}`, {
    quiet: true,
  });
  await page.locator("input[name=token]").fill(tokenOf(role));
  await page.locator(".sign-in-form button").click();
  await page.waitForLoadState("load");
  return page;
}

/** Another site, and another port of the same one, whose pages the signed-in admin opens. */
async function foreignOrigin(target: Target): Promise<void> {
  const { browser, url, folder } = target;
  const html = `<!doctype html><title>evil</title>
<form id=f method=post action="${url}/actions/backends/pod/cordon"><input name=note value=evil></form>
<img src="${url}/actions/backends/pod/cordon"><script src="${url}/api/v1/status"></script>
<script>
const told = [];
const send = (type) => fetch("${url}${CORDON}", {method: "POST", mode: "no-cors", credentials: "include",
  headers: {"content-type": type}, body: '{"note":"evil"}'}).then(() => "sent", () => "failed");
const look = () => fetch("${url}/api/v1/status", {credentials: "include"}).then(() => "read", () => "refused");
Promise.all([send("text/plain"), send("application/x-www-form-urlencoded"), look()])
  .then((all) => { document.title = all.join(); });
</script>`;
  await using evil = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response(html, { headers: { "content-type": "text/html" } }),
  );
  const context = await browser.newContext(LIGHT);
  await signedIn(target, context, { role: "admin" });
  for (const host of ["127.0.0.1", "localhost"]) {
    const page = await openPage(context, `http://${host}:${evil.addr.port}/`, { quiet: true });
    const title = await eventually(async () => (await page.title()).includes(",") && page.title(), {
      what: "the other page's calls to end",
      timeoutMs: 20_000,
    });
    check(`foreign origin ${host}: its script reads nothing (${title})`, title.endsWith("refused"));
    const [answer] = await Promise.all([
      page.waitForResponse((each) => each.url().includes("/actions/"), PATIENCE),
      page.evaluate(() => document.querySelector<HTMLFormElement>("#f")?.submit()),
    ]);
    check(
      `foreign origin ${host}: its form is refused (${answer.status()})`,
      [401, 403].includes(answer.status()),
    );
    await page.close();
  }
  for (
    const [name, value] of [["origin", "http://evil.example"], ["sec-fetch-site", "same-site"]]
  ) {
    const answer = await fetch(`${url}${CORDON}`, {
      method: "POST",
      headers: { ...JSON_BODY, ...target.as("admin"), [name ?? ""]: value ?? "" },
      body: '{"note":"evil"}',
    });
    await answer.body?.cancel();
    check(`foreign ${name}: even with a token it is refused`, answer.status === 403);
  }
  await target.untouched("foreign origin");
  const page = await openPage(context, `${url}/audit?result=refused`, { quiet: true });
  await inspect(page, folder, "attacked-audit");
  await context.close();
}

/** Without the proof of its session, with another's, and with cookies that are none of ours. */
async function proofs(target: Target): Promise<void> {
  const { url } = target;
  const cookieOf = async (role: Role) => {
    const signed = await fetch(`${url}/sign-in`, {
      method: "POST",
      headers: FORM,
      body: `token=${tokenOf(role)}`,
      redirect: "manual",
    });
    await signed.body?.cancel();
    return signed.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
  };
  const proofOf = async (cookie: string) => {
    const page = await (await fetch(`${url}/backends/pod`, {
      headers: { cookie, accept: "text/html" },
    })).text();
    return /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? "";
  };
  const post = async (headers: Record<string, string>, path = CORDON, body = '{"note":"x"}') => {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { ...JSON_BODY, ...headers },
      body,
      redirect: "manual",
    });
    await answer.body?.cancel();
    return answer.status;
  };
  const [admin, other] = [await cookieOf("admin"), await cookieOf("operator")];
  const foreign = await proofOf(other);
  check("there are sessions and proofs to attack with", admin !== "" && foreign.length > 20);
  check("missing CSRF proof: refused", await post({ cookie: admin }) === 403);
  check(
    "another session's CSRF proof: refused",
    await post({ cookie: admin, "x-csrf-token": foreign }) === 403,
  );
  check(
    "missing CSRF proof of a form: refused",
    await post({ cookie: admin, ...FORM }, "/actions/backends/pod/cordon", "note=x") === 403,
  );
  const [name = "", value = ""] = admin.split("=");
  const forged = [
    `${value.slice(0, -4)}AAAA`,
    `${value.startsWith("A") ? "B" : "A"}${value.slice(1)}`,
    btoa('{"actor":{"name":"root","role":"admin"}}'),
    "",
    "admin",
    value.slice(0, value.length / 2),
  ];
  for (const one of forged) {
    const status = await post({ cookie: `${name}=${one}`, "x-csrf-token": await proofOf(admin) });
    check(`forged cookie "${one.slice(0, 12)}…": nobody's`, status === 401);
  }
  const left = await fetch(`${url}/sign-out`, {
    method: "POST",
    headers: { cookie: admin, ...FORM },
    body: new URLSearchParams({ csrf: await proofOf(admin) }),
    redirect: "manual",
  });
  await left.body?.cancel();
  check("old cookie: nobody's after signing out", await post({ cookie: admin }) === 401);
  await target.untouched("proofs and cookies");
}

/** Texts as bodies, and reads with the addresses of actions. */
async function methodsAndTypes({ url, as, untouched }: Target): Promise<void> {
  const wrong: string[] = [];
  for (const { path, form } of ACTIONS) {
    for (const type of ["text/plain", form ? "application/json" : FORM["content-type"], ""]) {
      const answer = await fetch(`${url}${path}`, {
        method: "POST",
        headers: { ...as("admin"), ...type === "" ? {} : { "content-type": type } },
        body: new TextEncoder().encode(form ? "note=x" : '{"note":"x"}'),
      });
      await answer.body?.cancel();
      if (answer.status !== 415) wrong.push(`${type} ${path}: ${answer.status}`);
    }
    for (const method of ["GET", "HEAD", "PUT", "DELETE", "PATCH"]) {
      const answer = await fetch(`${url}${path}?note=x&tier=forced`, {
        method,
        headers: as("admin"),
      });
      await answer.body?.cancel();
      // Some addresses have a page of their own.
      if (answer.status < 400 && !["GET", "HEAD"].includes(method)) {
        wrong.push(`${method} ${path}: ${answer.status}`);
      }
    }
  }
  check(
    `text/plain, and other bodies than its own, at ${ACTIONS.length} actions: ${wrong.join("; ")}`,
    wrong.length === 0,
  );
  await untouched("GET with effect, and all other methods");
}

/** Each action with the token of a viewer; and what only admins may, with an operator's. */
async function roles({ url, as, audit, untouched }: Target): Promise<void> {
  const statuses: string[] = [];
  for (const { path, form } of ACTIONS) {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { ...as("viewer"), ...form ? FORM : JSON_BODY },
      body: form ? "note=x&tier=forced" : '{"note":"x","tier":"forced"}',
      redirect: "manual",
    });
    await answer.body?.cancel();
    if (answer.status !== 403) statuses.push(`${path}: ${answer.status}`);
  }
  check(
    `viewer on each of ${ACTIONS.length} actions: refused ${statuses.join("; ")}`,
    statuses.length === 0,
  );
  const rows = await eventually(async () => {
    const found = await audit("result=refused&actor=a-viewer");
    return found.length >= ACTIONS.length - 1 && found;
  }, { what: "the refusals in the audit", timeoutMs: 10_000 }).catch(() => []);
  // The self tests are no action on anything.
  check(`viewer: ${rows.length} refusals are audited`, rows.length === ACTIONS.length - 1);
  for (const path of ["/api/v1/backends/pod/capacity", "/api/v1/leader/step-down"]) {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { ...as("operator"), ...JSON_BODY },
      body: '{"note":"x","capacity":0}',
    });
    await answer.body?.cancel();
    check(`operator at ${path}: refused`, answer.status === 403);
  }
  await untouched("roles");
}

async function redirects(target: Target): Promise<void> {
  const { browser, url } = target;
  const tricks = [
    "//evil.example/",
    "https://evil.example/",
    "/\\evil.example",
    "/%2f%2fevil.example",
    "javascript:document.title='owned'",
    "\t//evil.example",
  ];
  for (const to of tricks) {
    const context = await browser.newContext(LIGHT);
    const page = await signedIn(target, context, { role: "viewer", to });
    const { origin } = new URL(page.url());
    check(
      `foreign redirect after sign-in ${JSON.stringify(to)}: stays at ${
        new URL(page.url()).pathname
      }`,
      origin === url && await page.title() !== "owned" && !page.url().includes("/sign-in"),
    );
    await context.close();
  }
}

/** A job with a script for a name, at a branch with one, and a note with one, on every page. */
async function storedScripts(target: Target): Promise<void> {
  const { browser, folder, url, place, as } = target;
  await place.dispatch("hostile");
  const job = await eventually(async () => {
    const answer = await fetch(`${url}/api/v1/assignments?limit=10`, { headers: as("admin") });
    const { items } = await answer.json() as { items: readonly { id: string }[] };
    return items[0];
  }, { what: "the job", timeoutMs: 30_000 });
  const context = await browser.newContext(LIGHT);
  const page = await signedIn(target, context, { role: "admin" });
  const step = page.locator("details.step", {
    has: page.locator("summary", { hasText: "Cordon" }),
  });
  await step.locator("summary").click();
  await step.locator("input[name=note]").fill(SCRIPT);
  await step.locator("button[type=submit]").click();
  await page.waitForURL(/\/operations\//, PATIENCE);
  const operation = new URL(page.url()).pathname;
  const own = (path: string) =>
    path.startsWith("/operations/")
      ? operation
      : path.replace(/gitea-task-\d+/, job.id).replace("backends/vm", "backends/pod");
  let shown = 0;
  for (const [name, path] of PAGES.filter(([name]) => name !== "stranger")) {
    await page.goto(url + own(path));
    const made = await page.locator("main img, a[href^='javascript:'], [onerror]").count();
    const text = await page.locator("body").innerText();
    if (text.includes("<img src=x")) shown++;
    check(
      `a stored script is no more than text on ${name} of the real controller`,
      made === 0 && await page.title() !== "owned" && !(await page.title()).includes("undefined"),
    );
  }
  check(`the script is shown as text on ${shown} pages`, shown >= 3);
  await page.goto(`${url}/backends/pod`);
  await inspect(page, folder, "attacked-backend");
  await context.close();
}
