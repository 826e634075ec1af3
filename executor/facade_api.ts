import {
  type UpdateLogRequest,
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  type UpdateTaskRequest,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { fromBinary, toBinary } from "../proto/runtime.ts";
import type { GatePhases } from "../controller/model/gate_phase.ts";
import type { Clock } from "../lib/clock.ts";
import { errorText } from "../lib/error_text.ts";
import { ownProperty } from "../lib/json_object.ts";
import { type FacadeAnswer, FacadeError, type FacadeLink } from "./facade_link.ts";
import type { Call, ReportSender, Sent } from "./report_sender.ts";

/** Below the facade's and Gitea's URL. */
export const RPC_PREFIX = "/api/actions";

const CALL_MS = 30_000;
/** An answer takes no longer, unless the facade holds it back: a call that waits less proves nothing. */
const SILENT_MS = 5_000;
/** Codes of the Connect protocol that no repetition can change. */
const FOR_GOOD = new Set([
  "permission_denied",
  "unauthenticated",
  "not_found",
  "already_exists",
  "failed_precondition",
  "invalid_argument",
]);

/** The answer to one RPC: raw protobuf with the headers that came with it, or an error by its code. */
export type RpcAnswer = Sent<
  { readonly body: Uint8Array; readonly headers: Readonly<Record<string, string>> }
>;

/** What the gate asks of the facade. Every method rejects with the signal's reason only. */
export interface FacadeApi extends ReportSender {
  /** One unary call with a protobuf body; `method` is `/package.Service/Method`. */
  rpc(method: string, body: Uint8Array, call: Call & { readonly timeoutMs?: number }): Promise<
    RpcAnswer
  >;
  /**
   * Says that the gate lives, whether its runner has begun to report, and where the job's log began
   * when the task was handed over: enough for a controller that has lost its record.
   */
  heartbeat(
    beat: { readonly holdsTask: boolean; readonly logOffset: number | undefined },
    call: Call,
  ): Promise<Sent<void>>;
  terminating(why: string, call: Call): Promise<Sent<void>>;
  exit(
    exit: {
      readonly delivered: boolean;
      readonly code: number;
      readonly detail: string;
      readonly phases: GatePhases;
    },
    call: Call,
  ): Promise<Sent<void>>;
}

/** The facade's API over a link; every call is bounded by 30 s unless told otherwise. */
export function createFacadeApi(link: FacadeLink, clock: Clock): FacadeApi {
  const post = async (
    request: { path: string; type: string; body: Uint8Array },
    { signal, timeoutMs }: Call & { readonly timeoutMs?: number },
  ): Promise<FacadeAnswer | { readonly kind: "later"; readonly why: string }> => {
    const limitMs = timeoutMs ?? CALL_MS;
    using limit = clock.timeout(limitMs);
    const headers = request.type === "application/proto"
      ? { "content-type": request.type, "connect-protocol-version": "1" }
      : { "content-type": request.type };
    try {
      return await link.post({ ...request, headers }, {
        signal: AbortSignal.any([signal, limit.signal]),
      });
    } catch (error) {
      signal.throwIfAborted();
      if (limit.signal.aborted && limitMs >= SILENT_MS) link.suspect();
      if (!(error instanceof FacadeError) && !limit.signal.aborted) throw error;
      return { kind: "later", why: errorText(error) };
    }
  };
  const rpc: FacadeApi["rpc"] = async (method, body, call) => {
    const path = RPC_PREFIX + method;
    const answer = await post({ path, type: "application/proto", body }, call);
    if ("kind" in answer) return answer;
    if (answer.status === 200) {
      return { kind: "accepted", value: { body: answer.body, headers: answer.headers } };
    }
    return refusal(answer);
  };
  const json = async (path: string, body: unknown, call: Call): Promise<Sent<void>> => {
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    const answer = await post({ path, type: "application/json", body: bytes }, {
      ...call,
      timeoutMs: SILENT_MS,
    });
    if ("kind" in answer) return answer;
    if (answer.status >= 200 && answer.status < 300) return { kind: "accepted", value: undefined };
    return refusal(answer);
  };
  return {
    rpc,
    heartbeat: (beat, call) => json("/executor/v1/heartbeat", beat, call),
    terminating: (why, call) => json("/executor/v1/terminating", { why }, call),
    exit: (exit, call) => json("/executor/v1/exit", exit, call),
    async updateLog(request: UpdateLogRequest, call) {
      const body = toBinary(UpdateLogRequestSchema, request);
      const sent = await rpc("/runner.v1.RunnerService/UpdateLog", body, call);
      return decoded(sent, (bytes) => fromBinary(UpdateLogResponseSchema, bytes));
    },
    async updateTask(request: UpdateTaskRequest, call) {
      const body = toBinary(UpdateTaskRequestSchema, request);
      const sent = await rpc("/runner.v1.RunnerService/UpdateTask", body, call);
      return decoded(sent, (bytes) => fromBinary(UpdateTaskResponseSchema, bytes));
    },
  };
}

function decoded<T>(answer: RpcAnswer, decode: (bytes: Uint8Array) => T): Sent<T> {
  if (answer.kind !== "accepted") return answer;
  try {
    return { kind: "accepted", value: decode(answer.value.body) };
  } catch (error) {
    return { kind: "later", why: `facade's answer cannot be read: ${errorText(error)}` };
  }
}

/** Connect and problem+json errors; the text of either is the facade's and holds no secret. */
function refusal(answer: FacadeAnswer): Exclude<Sent<never>, { kind: "accepted" }> {
  const text = new TextDecoder().decode(answer.body.subarray(0, 4096));
  const { code, message } = errorOf(text);
  const why = `status ${answer.status}, ${code || "no code"}: ${message}`;
  // A caller over its rate gets the same code, but is told when to come again.
  if (code === "resource_exhausted" && answer.headers["retry-after"] === undefined) {
    return { kind: "too_large", why };
  }
  const forGood = FOR_GOOD.has(code) || (code === "" && [401, 403, 410].includes(answer.status));
  return forGood ? { kind: "refused", why, sealed: code === "already_exists" } : {
    kind: "later",
    why,
  };
}

function errorOf(text: string): { readonly code: string; readonly message: string } {
  try {
    const error: unknown = JSON.parse(text);
    const said = (name: string) => {
      const words = ownProperty(error, name);
      return typeof words === "string" ? words : "";
    };
    return { code: said("code"), message: said("message") || said("detail") || said("title") };
  } catch {
    return { code: "", message: text.slice(0, 200) };
  }
}
