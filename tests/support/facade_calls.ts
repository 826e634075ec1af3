import { Code, ConnectError } from "../../clients/connect/error.ts";
import { LogRowSchema, Result, TaskStateSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";

/** Log rows of a report. */
export function rows(...contents: string[]) {
  return contents.map((content) => create(LogRowSchema, { content }));
}

/** The state of a report; without a result, one of a task that runs. */
export function state(id: bigint, result = Result.UNSPECIFIED) {
  return create(TaskStateSchema, { id, result });
}

/** How a call ended: its Connect code, or that there was no connection at all. */
export async function codeOf(call: Promise<unknown>): Promise<Code | "ok" | "no connection"> {
  try {
    await call;
    return "ok";
  } catch (error) {
    const { code, cause } = ConnectError.from(error);
    return cause instanceof TypeError ? "no connection" : code;
  }
}
