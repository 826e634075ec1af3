/** Codes of Gitea's error texts. */
export type ForgeErrorCode = "Unauthenticated" | "Internal" | "AlreadyExists" | "NotFound";

/** An error as Gitea words it: HTTP 500, Connect code `unknown`, the real code in the text. */
export class ForgeError extends Error {
  override readonly name = "ForgeError";

  constructor(code: ForgeErrorCode, description: string) {
    super(`rpc error: code = ${code} desc = ${description}`);
  }
}
