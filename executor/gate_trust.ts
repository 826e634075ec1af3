import type { GateCertificate } from "../clients/x509/gate_certificate.ts";
import type { GiteaRoute } from "./gitea_route.ts";

/** The image links a file of the system's certificate folder to `gate.pem` in here. */
const LINKED_DIR = "/run/identity-gate";

/** How the runner comes to trust the gate in Gitea's place. */
export interface GateTrust {
  /** Undefined for an http Gitea. */
  readonly certificate: GateCertificate | undefined;
  /** Folder to add to the runner's `SSL_CERT_DIR`; undefined where the image's link does it. */
  readonly certificateDir: string | undefined;
}

/**
 * Makes the certificate for an https Gitea and writes it, without its key, where the runner looks:
 * into the linked folder of the image, else into a folder of our own. Only Go reads every file of a
 * certificate folder; git, curl and Node never trust it. Rejects when neither can be written.
 */
export async function prepareTrust(
  route: GiteaRoute,
  options: { readonly work: string; readonly now: number; readonly linkedDir?: string },
): Promise<GateTrust> {
  if (!route.secure) return { certificate: undefined, certificateDir: undefined };
  // Loaded only where it is needed: it costs 25 ms.
  const { createGateCertificate } = await import("../clients/x509/gate_certificate.ts");
  const certificate = await createGateCertificate(route.host, options.now);
  const linked = options.linkedDir ?? LINKED_DIR;
  try {
    await Deno.writeTextFile(`${linked}/gate.pem`, certificate.certificatePem, { mode: 0o644 });
    return { certificate, certificateDir: undefined };
  } catch (error) {
    const absent = error instanceof Deno.errors.NotFound ||
      error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.NotCapable;
    if (!absent) throw error;
  }
  const certificateDir = `${options.work}/certificates`;
  await Deno.mkdir(certificateDir, { mode: 0o755 });
  await Deno.writeTextFile(`${certificateDir}/gate.pem`, certificate.certificatePem);
  return { certificate, certificateDir };
}
