/** Aborts with the signal's name when the process gets SIGINT or SIGTERM, so that a suite ends in order. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(name, () => stop.abort(new DOMException(`Got ${name}`, "AbortError")));
  }
  return stop.signal;
}
