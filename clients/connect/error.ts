/** Errors of the Connect protocol, and what else adapters need from its library. */
import { Code, ConnectError } from "@connectrpc/connect";

export { Code, ConnectError };

/** Context values of one call: how a server gives its handlers the peer certificate, for example. */
export {
  type ContextKey,
  type ContextValues,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";

/** The protocol's word for a code, e.g. `resource_exhausted`: a bounded label for metrics and logs. */
export function codeName(code: Code): string {
  return Code[code].replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}
