import type { VersionView } from "../views/operating_views.ts";

/** Parts whose versions are judged. */
export type KnownPart = "deno" | "nats-server" | "gitea";

type Version = readonly [major: number, minor: number, patch: number];

/** What is known of the versions of one part. */
interface Knowledge {
  /** Tried with this program, newest first. */
  readonly tried: readonly string[];
  /** Versions that do harm here: in which range, why, and what to use instead. */
  readonly bad: readonly {
    readonly from: string;
    /** The first one that is well again. */
    readonly until: string;
    readonly detail: string;
  }[];
}

const KNOWLEDGE: Readonly<Record<KnownPart, Knowledge>> = {
  "deno": {
    tried: ["2.9.6"],
    bad: [{
      from: "2.7.9",
      until: "2.7.10",
      detail: "Use 2.9.6: HTTP/2 with client certificates is broken in this one",
    }],
  },
  "nats-server": {
    tried: ["2.15.2", "2.15.1", "2.9.10"],
    bad: [{
      from: "0.0.0",
      until: "2.9.0",
      detail: "Use 2.9 or newer: stored messages cannot be read directly in this one",
    }],
  },
  "gitea": {
    tried: ["1.27.3", "1.26.0"],
    bad: [{
      from: "0.0.0",
      until: "1.27.0",
      detail:
        "Use 1.27.0 or newer: the token of a fork's job can read other private repositories (GHSA-fj8v-hjwv-qm88)",
    }],
  },
};

/** What is known of a version, `null` when it is not known itself. Pure. */
export function judgeVersion(part: KnownPart, version: string | null): VersionView {
  const parsed = version === null ? undefined : parse(version);
  if (parsed === undefined) return { name: part, version, verdict: "unknown", detail: null };
  const { tried, bad } = KNOWLEDGE[part];
  const harm = bad.find(({ from, until }) =>
    compare(parsed, demand(from)) >= 0 && compare(parsed, demand(until)) < 0
  );
  if (harm !== undefined) return { name: part, version, verdict: "bad", detail: harm.detail };
  return tried.some((each) => compare(parsed, demand(each)) === 0)
    ? { name: part, version, verdict: "good", detail: null }
    : { name: part, version, verdict: "untried", detail: `Tried with ${tried.join(", ")}` };
}

/** `1.27.3+12-gabc`, `v2.15.2`, `2.9.10-RC.1`: the three numbers. */
function parse(text: string): Version | undefined {
  const match = /^v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?/.exec(text.trim());
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

function demand(text: string): Version {
  const version = parse(text);
  if (version === undefined) throw new TypeError(`Read version: "${text}"`);
  return version;
}

function compare(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
