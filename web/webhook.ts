import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Recorder, WebhookResult } from "../controller/recorder.ts";
import type { Clock } from "../lib/clock.ts";
import { isObject } from "../lib/json_object.ts";
import type { Logger } from "../lib/logger.ts";
import type { Secret } from "../lib/secret.ts";
import { refuseMethod } from "./guard.ts";
import { problem } from "./problem.ts";
import { readBody } from "./read_body.ts";

/** Where Gitea sends its hints. */
export const WEBHOOK_PATH = "/webhooks/gitea";

/** Gitea's `workflow_job` has 10 to 30 KB; a long commit message makes it larger. */
const MAX_BODY = 1_048_576;

/** Answers `POST /webhooks/gitea`. */
export interface Webhook {
  /** 202 when Gitea is asked now, 204 when there is nothing to. Rejects with what `nudge` throws alone. */
  respond(request: Request, requestId: string): Promise<Response>;
}

/**
 * Makes the receiver of Gitea's webhook `workflow_job`: a job that is queued there is fetched now, not
 * at the next poll. It is a hint and proves nothing: what runs is what Gitea hands out. The body is
 * believed by its HMAC-SHA256 in hexadecimal in `X-Gitea-Signature`, made with the webhook's secret.
 */
export function createWebhook(deps: {
  readonly secret: Secret;
  /** Has Gitea asked now; false where another replica leads. */
  nudge(): boolean;
  readonly recorder: Pick<Recorder, "webhook">;
  readonly clock: Clock;
  readonly logger: Logger;
}): Webhook {
  const logger = deps.logger.child({ component: "webhook" });
  const { clock, secret } = deps;

  const judge = async (request: Request, requestId: string): Promise<Response> => {
    if (request.method !== "POST") {
      return refuseMethod(request.method, { requestId, allow: "POST" });
    }
    const body = await readBody(request, { maxBytes: MAX_BODY, clock, requestId }).catch(
      (error: unknown) => {
        logger.debug("webhook cut off", { requestId, error });
        return null;
      },
    );
    if (body === null) {
      return problem(400, { detail: "Send the body whole: it was cut off", requestId });
    }
    if (body.kind === "refused") return body.response;
    if (!isSigned(body.bytes, request.headers.get("x-gitea-signature"), secret)) {
      logger.warn("webhook refused", { requestId, why: "its signature is not of our secret" });
      return problem(403, {
        detail: "Give the webhook at Gitea the secret of GITEA_WEBHOOK_SECRET: the signature " +
          "in X-Gitea-Signature is not made with it",
        requestId,
      });
    }
    if (!isQueued(request.headers.get("x-gitea-event"), body.bytes)) {
      return new Response(null, { status: 204 });
    }
    if (deps.nudge()) return new Response(null, { status: 202 });
    return problem(503, {
      detail: "Send it to the leader: this process does not lead, and the leader polls anyway",
      requestId,
    });
  };

  return {
    async respond(request, requestId) {
      const answer = await judge(request, requestId);
      deps.recorder.webhook(RESULTS[answer.status] ?? "unreadable");
      return answer;
    },
  };
}

const RESULTS: Readonly<Record<number, WebhookResult>> = {
  202: "asked",
  204: "ignored",
  403: "forged",
  503: "not_leading",
};

function isSigned(body: Uint8Array, stated: string | null, secret: Secret): boolean {
  if (stated === null || !/^[0-9a-f]{64}$/i.test(stated)) return false;
  const made = createHmac("sha256", secret.reveal()).update(body).digest();
  return timingSafeEqual(made, Buffer.from(stated, "hex"));
}

/** Gitea also tells of jobs that start and end; those need no fetch. */
function isQueued(event: string | null, body: Uint8Array): boolean {
  if (event !== "workflow_job") return false;
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(body));
    return isObject(parsed) && parsed.action === "queued";
  } catch {
    return false;
  }
}
