/** A look at a process: when (milliseconds on any one clock), and its resident memory. */
export interface Sample {
  readonly at: number;
  readonly mib: number;
}

/** Resident memory over a run, MiB: medians of its first and its last quarter. */
export interface MemoryFigures {
  readonly first: number;
  readonly last: number;
  readonly most: number;
  /** 0.1 = the last quarter is a tenth above the first. */
  readonly growth: number;
}

/**
 * Compares the last quarter of the jobs with the first; `marks` are the moments at which jobs ended.
 * Undefined when there is too little to compare.
 */
export function compareQuarters(
  samples: readonly Sample[],
  marks: readonly number[],
): MemoryFigures | undefined {
  const sorted = [...marks].sort((a, b) => a - b);
  const [begin] = samples;
  const firstEnd = sorted[Math.floor(sorted.length / 4)];
  const lastBegin = sorted[Math.floor(sorted.length * 3 / 4)];
  if (begin === undefined || firstEnd === undefined || lastBegin === undefined) return undefined;
  const first = median(samples.filter(({ at }) => at <= firstEnd));
  const last = median(samples.filter(({ at }) => at >= lastBegin));
  if (first === undefined || last === undefined) return undefined;
  const most = Math.max(...samples.map(({ mib }) => mib));
  return { first, last, most, growth: last / first - 1 };
}

function median(samples: readonly Sample[]): number | undefined {
  const sorted = samples.map(({ mib }) => mib).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
