/**
 * Preloaded into a whole controller (`deno run --preload`): SIGUSR1 sets the wall clock of everything in
 * the process an hour on, SIGUSR2 an hour back; the monotonic clock stays. TLS alone asks the machine.
 */
const HOUR_MS = 3_600_000;
const machine = Date.now.bind(Date);
let shiftMs = 0;

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [machine() + shiftMs] : args, newTarget),
  get: (target, name) =>
    name === "now" ? () => machine() + shiftMs : Reflect.get(target, name, target),
});

for (const [signal, ms] of [["SIGUSR1", HOUR_MS], ["SIGUSR2", -HOUR_MS]] as const) {
  Deno.addSignalListener(signal, () => {
    shiftMs += ms;
  });
}

export {};
