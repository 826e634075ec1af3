/** What a {@link ./fake_forge.ts | fake forge} does wrong while a switch is set. Counters count down. */
export interface Faults {
  /** The version told never moves (field report F5). */
  versionFrozen: boolean;
  /** The next fetches claim a task and never answer: lost for the runner (F2). */
  handOutAndHang: number;
  /** The next fetches hand out the newest claimed task once more (F3). */
  handOutTwice: number;
  /** Every second call fails with `Internal` (F6). */
  internalEverySecond: boolean;
  /** The next fetches echo the version sent and look for nothing, as above 16 picks at once. */
  throttled: number;
  /** The next UpdateLog with `no_more` fail with `Internal`; nothing of them is stored. */
  failLastRow: number;
  /** Every call is refused as `unregistered runner`. */
  unauthenticated: boolean;
  /** The next final UpdateTask are stored, and the connection drops before the answer. */
  loseFinalAnswer: number;
  /** UpdateLog and UpdateTask with larger bodies, bytes, get a proxy's 413. */
  bodyLimit: number;
  /** Nobody answers: connection refused. */
  down: boolean;
  /** Answers with a web page instead. */
  html: boolean;
}

/** No fault. */
export function noFaults(): Faults {
  return {
    versionFrozen: false,
    handOutAndHang: 0,
    handOutTwice: 0,
    internalEverySecond: false,
    throttled: 0,
    failLastRow: 0,
    unauthenticated: false,
    loseFinalAnswer: 0,
    bodyLimit: Infinity,
    down: false,
    html: false,
  };
}

type Counter = { [K in keyof Faults]: Faults[K] extends number ? K : never }[keyof Faults];

/** Counts one down; true if there was one. */
export function take(faults: Faults, counter: Counter): boolean {
  if (faults[counter] <= 0) return false;
  faults[counter] -= 1;
  return true;
}
