import assert from "node:assert/strict";
import { parse } from "yaml";
import { createMetrics } from "../../clients/prometheus/metrics.ts";
import { phaseNames } from "../../controller/views/phases.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createFakeViews } from "../fakes/views.ts";

const FOLDER = new URL("../../deploy/monitoring/", import.meta.url);
/** What the queries may ask of, besides `le` of histograms. */
const LABELS: Readonly<Record<string, readonly string[]>> = {
  gdr_assignments: ["backend", "state"],
  gdr_slots: ["backend", "state"],
  gdr_parked: ["backend"],
  gdr_phase_seconds: ["backend", "phase"],
  gdr_executor_failures_total: ["backend", "reason"],
  gdr_transitions_total: ["backend", "event"],
  gdr_fetch_total: ["result"],
  gdr_publish_total: ["result"],
  gdr_facade_requests_total: ["method", "code"],
  gdr_facade_request_seconds: ["method"],
  gdr_watch_age_seconds: ["source"],
};

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly description: string };
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

async function rules(): Promise<readonly Rule[]> {
  const text = await Deno.readTextFile(new URL("alerts.yaml", FOLDER));
  const { groups } = parse(text) as { groups: { rules: Rule[] }[] };
  return groups.flatMap((group) => group.rules);
}

async function panels(): Promise<readonly Panel[]> {
  const text = await Deno.readTextFile(new URL("dashboard.json", FOLDER));
  return (JSON.parse(text) as { panels: Panel[] }).panels;
}

async function expressions(): Promise<readonly string[]> {
  const drawn = (await panels()).flatMap(({ targets }) => targets.map(({ expr }) => expr));
  return [...drawn, ...(await rules()).map(({ expr }) => expr)];
}

/** Every metric that the program has, by its name without the suffixes of a histogram. */
async function measured(): Promise<ReadonlySet<string>> {
  const clock = createFakeClock();
  await using metrics = createMetrics({ views: createFakeViews({ clock }), clock });
  const text = await metrics.text();
  return new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? ""));
}

const baseOf = (name: string) => name.replace(/_(bucket|sum|count)$/, "");

Deno.test("alerts and panels ask for metrics that there are, and for their labels", async () => {
  const names = await measured();
  for (const expr of await expressions()) {
    const asked = [...expr.matchAll(/\b(gdr_\w+|process_\w+)/g)].map(([name]) => baseOf(name));
    assert.ok(asked.length > 0, expr);
    for (const name of asked) assert.ok(names.has(name), `${name} in ${expr}`);
    const allowed = new Set(["le", ...asked.flatMap((name) => LABELS[name] ?? [])]);
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = ""]) =>
      list.split(", ")
    );
    const selected = [...expr.matchAll(/[{,](\w+)[!=]~?=?"/g)].map(([, label = ""]) => label);
    for (const label of [...grouped, ...selected]) {
      assert.ok(allowed.has(label), `${label} in ${expr}`);
    }
  }
});

Deno.test("alerts and panels name phases that there are", async () => {
  for (const expr of await expressions()) {
    for (const [, names = ""] of expr.matchAll(/\bphase=~?"([^"]*)"/g)) {
      for (const name of names.split("|")) {
        assert.ok(phaseNames.includes(name), `${name} in ${expr}`);
      }
    }
  }
});

Deno.test("every alert says what is wrong and where to look", async () => {
  const all = await rules();
  assert.equal(new Set(all.map(({ alert }) => alert)).size, all.length);
  for (const { alert, annotations } of all) {
    assert.match(alert, /^Gdr[A-Z]/);
    assert.ok(annotations.summary.length > 10 && annotations.description.length > 20, alert);
  }
});

Deno.test("every panel has a place of its own", async () => {
  const all = await panels();
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
  assert.equal(new Set(all.map(({ title }) => title)).size, all.length);
});
