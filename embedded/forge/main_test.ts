import assert from "node:assert/strict";

interface Ready {
  readonly url: string;
  readonly registrationToken: string;
}

/** The program as a child; resolves when it has said that it answers. */
async function start(state: string) {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", new URL("./main.ts", import.meta.url).pathname, "--state", state],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    assert(!done, "the sample forge ended before it answered");
    text += value;
  }
  const ready: Ready = JSON.parse(text);
  return {
    ready,
    tasks: async (): Promise<{ readonly jobId: number; readonly state: string }[]> =>
      await (await fetch(`${ready.url}/api/forge/tasks`)).json(),
    async end(signal: Deno.Signal) {
      child.kill(signal);
      const status = await child.status;
      await reader.cancel();
      return status;
    },
  };
}

Deno.test("the sample forge keeps its jobs over kill -9 and queues new ones only when all have ended", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const first = await start(`${folder}/forge`);
    const before = await first.tasks();
    assert.equal(before.length, 8);
    await first.end("SIGKILL");
    const second = await start(`${folder}/forge`);
    assert.equal(second.ready.registrationToken, first.ready.registrationToken);
    assert.deepEqual(await second.tasks(), before);
    assert.equal((await second.end("SIGTERM")).code, 0);
    assert.equal((Deno.statSync(`${folder}/forge`).mode ?? 0) & 0o777, 0o700);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
