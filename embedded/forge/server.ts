import { connectFetchHandler } from "../../clients/connect/fetch_handler.ts";
import type { Forge } from "./forge.ts";
import { forgePages } from "./pages.ts";
import { forgeService } from "./service.ts";

/** The whole forge as one request handler, for `Deno.serve` or straight as a `fetch`. */
export function forgeHandler(forge: Forge): (request: Request) => Promise<Response> {
  const connect = connectFetchHandler(forgeService(forge));
  const pages = forgePages(forge);
  return async (request) => await connect(request) ?? pages(request);
}
