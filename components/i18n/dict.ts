import type { ReasonCode, Result } from "../../controller/model/reason.ts";
import type { StateName } from "../../controller/model/state.ts";
import type { ActingDict } from "./dict_acting.ts";
import type { OperatingDict } from "./dict_operating.ts";

/** A text that counts: `one` for a single thing, `other` for the rest. */
export interface Plural {
  readonly one: string;
  readonly other: string;
}

/**
 * Every text of the pages. A language that lacks one does not compile. Texts are strings, never
 * functions, so that a page can carry its own language to the browser as JSON.
 */
export interface Dict extends OperatingDict, ActingDict {
  product: string;
  skip: string;
  nav: { label: string; now: string };
  language: { label: string; en: string; zh: string };
  units: { ms: string; s: string; m: string; h: string; d: string };
  ago: string;
  in: string;
  now: string;
  unknown: string;
  none: string;
  asOf: string;
  live: {
    live: string;
    connecting: string;
    lost: string;
    paused: string;
    banner: string;
    retry: string;
    reload: string;
  };
  standby: {
    title: string;
    text: string;
    nobody: string;
    /** `{at}` */
    events: string;
  };
  recovering: string;
  partial: string;
  leader: {
    title: string;
    leading: string;
    standby: string;
    vacant: string;
    single: string;
    epoch: string;
    renewed: string;
    replicas: Plural;
    self: string;
  };
  sources: {
    title: string;
    gitea: string;
    nats: string;
    kubernetes: string;
    spire: string;
    opensandbox: string;
    heard: string;
    neverHeard: string;
    since: string;
    lastError: string;
    states: {
      up: string;
      down: string;
      degraded: string;
      unused: string;
      unknown: string;
    };
  };
  backends: {
    title: string;
    absent: string;
    label: string;
    inUse: string;
    slots: string;
    free: string;
    over: string;
    more: string;
    waiting: string;
    running: string;
    starting: string;
    parked: string;
    unknown: string;
    unknownSlot: string;
    parkedJob: string;
    start: string;
    queue: string;
    failures: string;
    cordoned: string;
    draining: string;
    holding: string;
    byAt: string;
    remaining: Plural;
    deadline: string;
  };
  filters: {
    title: string;
    backend: string;
    state: string;
    repository: string;
    list: string;
    all: string;
    placeholder: string;
    apply: string;
    clear: string;
    ignored: string;
    badCursor: string;
  };
  groups: {
    waiting: string;
    running: string;
    ended: string;
    shown: string;
    oldest: string;
    all: string;
    next: string;
    first: string;
    noneMatch: string;
    scroll: string;
    loading: string;
  };
  empty: {
    title: string;
    text: string;
    next: string;
    asking: string;
    last: string;
    silent: string;
    running: string;
    ended: string;
  };
  columns: {
    position: string;
    job: string;
    backend: string;
    state: string;
    why: string;
    since: string;
    waiting: string;
    started: string;
    age: string;
    executor: string;
    result: string;
    ended: string;
    took: string;
  };
  row: {
    fork: string;
    forkTitle: string;
    next: string;
    tryAt: string;
    deliveries: Plural;
    failures: Plural;
    noReason: string;
  };
  states: Record<StateName, string>;
  results: Record<Result, string>;
  reasons: Record<ReasonCode, string>;
  assignment: {
    back: string;
    gitea: string;
    giteaHost: string;
    facts: string;
    id: string;
    task: string;
    run: string;
    ref: string;
    owner: string;
    backend: string;
    executor: string;
    identity: string;
    fork: string;
    own: string;
    sequence: string;
    deliveries: string;
    nextTry: string;
    failures: string;
    position: string;
    epoch: string;
    trace: string;
    created: string;
    updated: string;
    total: string;
    soFar: string;
    timeline: string;
    phase: string;
    started: string;
    duration: string;
    usual: string;
    lasts: string;
    scale: string;
    slow: string;
    overP95: string;
    noPhases: string;
    events: string;
    noEvents: string;
    inHistory: string;
    at: string;
    event: string;
    component: string;
    retry: string;
    untilNext: string;
    detail: string;
    lines: string;
    linesNote: string;
    retryNow: string;
  };
  absent: {
    title: string;
    text: string;
    home: string;
  };
  failed: {
    title: string;
    text: string;
  };
  keys: {
    open: string;
    title: string;
    search: string;
    move: string;
    go: string;
    help: string;
    off: string;
    close: string;
  };
  footer: { api: string; status: string; version: string; loopback: string };
}
