import {
  universalServerRequestFromFetch,
  universalServerResponseToFetch,
} from "@connectrpc/connect/protocol";
import { type Register, type RouterOptions, routesByPath } from "./router.ts";

/**
 * Serves Connect behind a fetch-style handler such as `Deno.serve`'s. Resolves to `undefined` for
 * any other path, so that pages can follow. Never rejects for a failed call: that is an answer.
 */
export function connectFetchHandler(
  register: Register,
  options: RouterOptions = {},
): (request: Request) => Promise<Response | undefined> {
  const routes = routesByPath(register, options);
  return async (request) => {
    const handler = routes.get(new URL(request.url).pathname);
    if (handler === undefined) return undefined;
    const answer = await handler(universalServerRequestFromFetch(request, { httpVersion: "1.1" }));
    return universalServerResponseToFetch(answer);
  };
}
