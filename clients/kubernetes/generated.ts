import type * as k8s from "@kubernetes/client-node";
import { malformed, Refused, type Transport } from "./transport.ts";

/** Options of the generated methods, their last argument: carries signal and content type of a call. */
export type CallOptions = k8s.ConfigurationOptions<k8s.ObservableMiddleware>;

/** Content types of a PATCH. */
export const PATCH_TYPES = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/** Generated classes over our transport; credentials are the transport's, too. */
export function configurationOf(library: typeof k8s, transport: Transport): k8s.Configuration {
  return library.createConfiguration({
    baseServer: new library.ServerConfiguration(transport.server, {}),
    httpApi: library.wrapHttpLibrary({
      async send(context) {
        const signal = context.getSignal();
        if (signal === undefined) {
          throw new TypeError("Call the API server: pass the options of call() to the method");
        }
        const body = context.getBody();
        const { status, headers, text } = await transport.exchange({
          method: context.getHttpMethod(),
          url: context.getUrl(),
          headers: context.getHeaders(),
          ...typeof body === "string" ? { body } : {},
        }, signal);
        if (!headers.get("content-type")?.includes("json")) {
          throw new Refused(malformed(`no JSON but "${headers.get("content-type") ?? ""}"`));
        }
        return new library.ResponseContext(status, Object.fromEntries(headers), {
          text: () => Promise.resolve(text),
          binary: () => Promise.reject(new TypeError("Read binary data: the API has none")),
          stream: () => null,
        });
      },
    }),
  });
}

/** Makes {@link CallOptions}: `contentType` in place of the one that the class chooses, unless null. */
export function callOptions(
  library: typeof k8s,
  signal: AbortSignal,
  contentType: string | null,
): CallOptions {
  return {
    middlewareMergeStrategy: "append",
    middleware: [{
      pre(context) {
        context.setSignal(signal);
        if (contentType !== null) context.setHeaderParam("Content-Type", contentType);
        return new library.Observable(Promise.resolve(context));
      },
      post: (context) => new library.Observable(Promise.resolve(context)),
    }],
  };
}
