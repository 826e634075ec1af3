import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import type { Reach, SignOuts } from "../../controller/access/sign_outs.ts";
import { type Actor, roleNamed } from "../../controller/model/role.ts";
import type { Clock } from "../../lib/clock.ts";
import { isObject } from "../../lib/json_object.ts";
import { randomHex } from "../../lib/random_hex.ts";
import type { Seal } from "./seal.ts";

/** A working day; then people sign in again, and their groups are looked at again. */
export const SESSION_MS = 8 * 3_600_000;

/** Somebody who has signed in. */
export interface Session {
  readonly actor: Actor;
  /** What forms of this session, and nobody else's, carry. */
  readonly proof: string;
}

/** Sessions that live in sealed cookies, so that every replica knows them. */
export interface Sessions {
  /** A new one, as the text of its cookie; each has an id and a proof of its own. */
  begin(actor: Actor): string;
  /** Undefined for a text that is forged, too old, or of a session that was ended. */
  read(text: string): Session | undefined;
  /** Ends it before its time; resolves to how far that reaches. Never rejects. */
  end(text: string): Promise<Reach>;
}

interface Content {
  readonly id: string;
  readonly endsAt: number;
  readonly session: Session;
}

/** Makes {@link Sessions}. */
export function createSessions(deps: {
  readonly seal: Seal;
  readonly signOuts: Pick<SignOuts, "has" | "end">;
  readonly clock: Clock;
}): Sessions {
  const { seal, signOuts, clock } = deps;

  const open = (text: string): Content | undefined => {
    const content = readContent(seal.open("session", text));
    return content !== undefined && content.endsAt > clock.now() ? content : undefined;
  };
  return {
    begin({ name, role }) {
      const endsAt = clock.now() + SESSION_MS;
      return seal.seal("session", { id: randomHex(16), proof: randomHex(16), name, role, endsAt });
    },
    read(text) {
      const content = open(text);
      if (content === undefined || signOuts.has(hashOf(content), content.endsAt)) return undefined;
      return content.session;
    },
    async end(text) {
      const content = open(text);
      // Nobody's, or over: there is nothing to tell anybody.
      if (content === undefined) return "shared";
      return await signOuts.end(hashOf(content), content.endsAt);
    },
  };
}

/** What is told of a session: who reads it knows neither the session nor its id. */
function hashOf({ id }: Content): string {
  return createHash("sha256").update(`gdr session ${id}`).digest("base64url");
}

function readContent(json: unknown): Content | undefined {
  if (!isObject(json)) return undefined;
  const { id, proof, name, endsAt } = json;
  const role = roleNamed(String(json.role));
  if (typeof id !== "string" || typeof proof !== "string" || typeof name !== "string") {
    return undefined;
  }
  if (typeof endsAt !== "number" || role === undefined) return undefined;
  return { id, endsAt, session: { actor: { name, role }, proof } };
}

/** Compares a proof in constant time. */
export function isProof(given: unknown, proof: string): boolean {
  if (typeof given !== "string") return false;
  const [a, b] = [Buffer.from(given), Buffer.from(proof)];
  return a.length === b.length && timingSafeEqual(a, b);
}
