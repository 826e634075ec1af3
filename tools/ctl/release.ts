import type { ReleasePreview } from "../../controller/actions/release_preview.ts";
import { argument, idOf } from "./arguments.ts";
import { act, type CommandCall } from "./command.ts";
import { previewText } from "./render.ts";
import { EXIT, UsageError } from "./usage.ts";

/** Gives an assignment up. Says what it will do, and to which job, before it does it; nothing is preset. */
export async function release(call: CommandCall): Promise<number> {
  const { line, client, ask, out, conclude } = call;
  const id = idOf(line);
  const { tier, confirm } = line.text;
  if (tier === undefined) throw new UsageError("Choose how: --tier graceful, forced or forget");
  const path = `/assignments/${id}`;
  const answer = await client.get(`${path}/preview?tier=${encodeURIComponent(tier)}`);
  if (answer.status !== 200) return conclude(answer, () => "");
  const preview = answer.body as ReleasePreview;
  const json = line.flags.has("json");
  if (!json) out(previewText(preview));
  const { tag } = preview;
  const take = (confirmed: string) =>
    act(call, `${path}/release`, {
      body: { tier, ...tier === "forget" ? { confirm: confirmed } : {} },
      tag,
    });
  if (line.flags.has("yes")) return await take(confirm ?? "");
  if (json || ask === null) throw new UsageError("Add --yes: there is nobody to ask");
  if (tier === "forget") return await take(ask(`Type "${id}" to forget it:`) ?? "");
  if (ask('Type "yes" to do it:')?.trim() === "yes") return await take("");
  out("Nothing was done.\n");
  return EXIT.refused;
}

/** Gives an executor up that no assignment accounts for. */
export async function releaseExecutor(call: CommandCall): Promise<number> {
  const { line } = call;
  const name = encodeURIComponent(argument(line, 0));
  const { tier, confirm = "" } = line.text;
  if (tier === undefined) throw new UsageError("Choose how: --tier forced or forget");
  if (!line.flags.has("yes")) throw new UsageError("Add --yes: it cannot be undone");
  return await act(call, `/executors/${name}/release`, { body: { tier, confirm } });
}
