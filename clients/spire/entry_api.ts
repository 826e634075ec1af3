import {
  BatchCreateEntryRequestSchema,
  BatchCreateEntryResponseSchema,
  BatchDeleteEntryRequestSchema,
  BatchDeleteEntryResponseSchema,
  ListEntriesRequestSchema,
  ListEntriesResponseSchema,
} from "../../proto/gen/spire/api/server/entry/v1/entry_pb.ts";
import type { Entry } from "../../proto/gen/spire/api/types/entry_pb.ts";
import { create, type MessageInitShape } from "../../proto/runtime.ts";
import { EntrySchema } from "../../proto/gen/spire/api/types/entry_pb.ts";
import { BackendError } from "../../controller/backend.ts";
import { openUnixClient } from "../grpc/client.ts";
import { grpcCode, GrpcError } from "../grpc/grpc_error.ts";
import { methodOf } from "../grpc/method.ts";

const SERVICE = "/spire.api.server.entry.v1.Entry";
const listEntries = methodOf(`${SERVICE}/ListEntries`, {
  request: ListEntriesRequestSchema,
  response: ListEntriesResponseSchema,
});
const createEntries = methodOf(`${SERVICE}/BatchCreateEntry`, {
  request: BatchCreateEntryRequestSchema,
  response: BatchCreateEntryResponseSchema,
});
const deleteEntries = methodOf(`${SERVICE}/BatchDeleteEntry`, {
  request: BatchDeleteEntryRequestSchema,
  response: BatchDeleteEntryResponseSchema,
});

/** What an entry is made of. */
export type EntryInit = MessageInitShape<typeof EntrySchema>;

/**
 * Registration entries of a SPIRE server. Every method throws `BackendError`: `unavailable` when the
 * server does not answer, `refused` when it says no; or the signal's reason.
 */
export interface EntryApi extends Disposable {
  /** Every entry below that parent; with `hint`, those with exactly that hint. */
  list(
    filter: { readonly parentId: string; readonly hint?: string },
    signal: AbortSignal,
  ): Promise<Entry[]>;
  /** The entry made; `exists` = the one that already has this SPIFFE ID, parent and selectors. */
  create(
    entry: EntryInit,
    signal: AbortSignal,
  ): Promise<{ readonly kind: "created" | "exists"; readonly entry: Entry }>;
  /** Absent is success. */
  delete(ids: readonly string[], signal: AbortSignal): Promise<void>;
}

const PAGE = 500;
const DEADLINE_MS = 10_000;

/** The API on the server's admin socket. Opens nothing yet: the first call connects. */
export function createEntryApi(adminSocket: string): EntryApi {
  const client = openUnixClient(adminSocket);
  const call = async <T>(
    action: string,
    run: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      signal.throwIfAborted();
      const { code, message } = GrpcError.from(error);
      const state = code === "UNAVAILABLE" || code === "DEADLINE_EXCEEDED"
        ? "unavailable"
        : "refused";
      throw new BackendError(
        state,
        `${action} at SPIRE server "${adminSocket}": ${code}: ${message}: check that it runs and its socket may be used`,
        { cause: error },
      );
    }
  };
  const options = (signal: AbortSignal) => ({ signal, deadlineMs: DEADLINE_MS });
  return {
    list({ parentId, hint }, signal) {
      return call("List entries", async () => {
        const entries: Entry[] = [];
        let pageToken = "";
        do {
          const filter = {
            byParentId: idOf(parentId),
            ...(hint === undefined ? {} : { byHint: hint }),
          };
          const request = create(ListEntriesRequestSchema, { filter, pageSize: PAGE, pageToken });
          const page = await client.unary(listEntries, request, options(signal));
          // An older server may not know the filter by hint.
          entries.push(...page.entries.filter((e) => hint === undefined || e.hint === hint));
          pageToken = page.nextPageToken;
        } while (pageToken !== "");
        return entries;
      }, signal);
    },
    create(entry, signal) {
      return call("Make entry", async () => {
        const request = create(BatchCreateEntryRequestSchema, { entries: [entry] });
        const { results: [result] } = await client.unary(createEntries, request, options(signal));
        const code = grpcCode(result?.status?.code);
        if (result?.entry !== undefined && code === "OK") {
          return { kind: "created", entry: result.entry };
        }
        if (result?.entry !== undefined && code === "ALREADY_EXISTS") {
          return { kind: "exists", entry: result.entry };
        }
        throw new GrpcError(code, result?.status?.message ?? "no result");
      }, signal);
    },
    async delete(ids, signal) {
      if (ids.length === 0) return;
      await call("Delete entry", async () => {
        const request = create(BatchDeleteEntryRequestSchema, { ids: [...ids] });
        const { results } = await client.unary(deleteEntries, request, options(signal));
        for (const { status } of results) {
          const code = grpcCode(status?.code);
          if (code !== "OK" && code !== "NOT_FOUND") {
            throw new GrpcError(code, status?.message ?? "");
          }
        }
      }, signal);
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  };
}

/** A SPIFFE ID as SPIRE's messages carry it; throws a `TypeError` for anything else. */
export function idOf(spiffeId: string): { readonly trustDomain: string; readonly path: string } {
  const match = /^spiffe:\/\/([^/]+)(\/.+)$/.exec(spiffeId);
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new TypeError(`Read SPIFFE ID "${spiffeId}": it has no trust domain or no path`);
  }
  return { trustDomain: match[1], path: match[2] };
}
