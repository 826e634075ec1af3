import { join } from "node:path";
import { type Authority, createAuthority, restoreAuthority } from "../clients/x509/trust_domain.ts";
import { readIfThere } from "../lib/if_there.ts";
import { replaceFile } from "../lib/replace_file.ts";

/** A clock that was set back a little is waited for. */
const SOON_MS = 60_000;

/**
 * The CA kept in the directory, made when there is none, when it lives for less than `leftMs`, or when it
 * begins in the future: the clock was wrong when it was made, and nobody would trust it until then.
 * Throws an `Error` that says what to do when the file is damaged, or another trust domain's.
 */
export async function keepAuthority(
  directory: string,
  options: { readonly trustDomain: string; readonly now: number; readonly leftMs: number },
): Promise<Authority> {
  const { trustDomain, now, leftMs } = options;
  const path = join(directory, "authority.pem");
  const pem = await readIfThere(path);
  if (pem !== undefined) {
    try {
      const authority = await restoreAuthority(pem, trustDomain);
      const { startsAt, expiresAt } = authority;
      if (startsAt < now + SOON_MS && expiresAt > now + leftMs) return authority;
    } catch (error) {
      throw new Error(
        `Read CA "${path}": it is damaged or another trust domain's: remove it to start anew`,
        { cause: error },
      );
    }
  }
  const authority = await createAuthority(trustDomain, now);
  await replaceFile(path, await authority.exportPem());
  return authority;
}
