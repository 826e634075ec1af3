import assert from "node:assert/strict";
import { run, startProcess } from "./process.ts";

async function folder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "gdr-process-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

Deno.test("run() resolves to what was printed, and rejects with it on another exit code", async () => {
  assert.equal((await run("sh", ["-c", "echo out"])).stdout, "out\n");
  await assert.rejects(run("sh", ["-c", "echo why >&2; exit 3"]), /exit code 3\nwhy/);
});

Deno.test("run() kills the program and rejects with the reason when aborted", async () => {
  const stop = new AbortController();
  const running = run("sleep", ["60"], { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
});

Deno.test("run() does not wait for what a program has left running with its output", async () => {
  const script = "sleep 60 & echo $!";
  const { stdout } = await run("sh", ["-c", script], { lastWordsMs: 100 });
  Deno.kill(Number(stdout), "SIGKILL");
});

Deno.test("startProcess() has the program's own pid and keeps what it prints", async () => {
  await using dir = await folder();
  await using process = await startProcess("sh", ["-c", "echo $$; echo end; exec cat"], {
    logFile: `${dir.path}/log`,
  });
  assert.equal(await process.exited, 0);
  assert.equal(await process.tail(2), `${process.pid}\nend`);
});

Deno.test("stop() kills a program that does not end by itself", async () => {
  await using dir = await folder();
  await using process = await startProcess("sleep", ["60"], { logFile: `${dir.path}/log` });
  assert.equal(await process.stop(), 128 + 15);
  assert.equal(await process.kill(), 128 + 15, "an ended one is left alone");
});
