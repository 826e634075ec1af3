import {
  DeclareRequestSchema,
  DeclareResponseSchema,
  FetchTaskRequestSchema,
  FetchTaskResponseSchema,
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "../../proto/runtime.ts";

/** The registration file, as the gate writes it. */
export interface Registration {
  readonly uuid: string;
  readonly token: string;
  readonly address: string;
  readonly labels: readonly string[];
}

interface Call {
  readonly signal: AbortSignal;
}

/** RunnerService of the server in the registration file. Calls reject with an `Error`. */
export interface Rpc {
  declare(request: MessageInitShape<typeof DeclareRequestSchema>, call: Call): Promise<void>;
  fetchTask(call: Call): Promise<MessageShape<typeof FetchTaskResponseSchema>>;
  updateLog(
    request: MessageInitShape<typeof UpdateLogRequestSchema>,
    call: Call,
  ): Promise<MessageShape<typeof UpdateLogResponseSchema>>;
  updateTask(
    request: MessageInitShape<typeof UpdateTaskRequestSchema>,
    call: Call,
  ): Promise<MessageShape<typeof UpdateTaskResponseSchema>>;
}

/** Speaks Connect over `fetch`, which takes its proxy from this process's environment. */
export function createRpc(registration: Registration, client?: Deno.HttpClient): Rpc {
  const base = `${registration.address.replace(/\/+$/, "")}/api/actions/runner.v1.RunnerService`;
  const headers = {
    "content-type": "application/proto",
    "connect-protocol-version": "1",
    "x-runner-uuid": registration.uuid,
    "x-runner-token": registration.token,
  };
  const call = async <I extends DescMessage, O extends DescMessage>(
    method: { readonly name: string; readonly request: I; readonly response: O },
    message: MessageInitShape<I>,
    { signal }: Call,
  ): Promise<MessageShape<O>> => {
    const body = new Uint8Array(toBinary(method.request, create(method.request, message)));
    const answer = await fetch(`${base}/${method.name}`, {
      method: "POST",
      headers,
      body,
      signal,
      ...(client === undefined ? {} : { client }),
    });
    if (!answer.ok) {
      const text = (await answer.text()).slice(0, 300);
      throw new Error(`Call ${method.name}: status ${answer.status}: ${text}`);
    }
    return fromBinary(method.response, new Uint8Array(await answer.arrayBuffer()));
  };
  const fetchTask = {
    name: "FetchTask",
    request: FetchTaskRequestSchema,
    response: FetchTaskResponseSchema,
  };
  const declare = {
    name: "Declare",
    request: DeclareRequestSchema,
    response: DeclareResponseSchema,
  };
  const updateLog = {
    name: "UpdateLog",
    request: UpdateLogRequestSchema,
    response: UpdateLogResponseSchema,
  };
  const updateTask = {
    name: "UpdateTask",
    request: UpdateTaskRequestSchema,
    response: UpdateTaskResponseSchema,
  };
  return {
    declare: async (request, options) => void await call(declare, request, options),
    fetchTask: (options) => call(fetchTask, {}, options),
    updateLog: (request, options) => call(updateLog, request, options),
    updateTask: (request, options) => call(updateTask, request, options),
  };
}
