import { createBackgroundTasks } from "../support/background_tasks.ts";
import { type Container, startContainer } from "../support/container.ts";
import { boundIn, jobIn } from "../support/vm_backend_setup.ts";
import { openSandboxObjects, type SandboxObject } from "./sandbox_objects.ts";
import type { Stage } from "./stage.ts";

/** What a guest does in place of running what its sandbox says, and telling how that ended. */
export type Role =
  /** It is not started yet; asked again. */
  | { readonly kind: "wait" }
  | {
    readonly kind: "run";
    /** In place of the sandbox's own. */
    readonly command?: readonly string[];
    /** Whether the server is told that it has ended. */
    readonly tells: boolean;
  };

/** What was seen of one sandbox; times by the monotonic clock, null while it has not come to that. */
export interface Guest {
  readonly name: string;
  /** Key of its job; null when its metadata do not tell. */
  readonly job: string | null;
  /** Which sandbox of its job it is, from 1. */
  readonly nth: number;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly seenAt: number;
  readonly startedAt: number | null;
  /** When its entry was made, and for which SPIFFE ID. */
  readonly boundAt: number | null;
  readonly spiffeId: string | null;
  readonly exitCode: number | null;
  readonly endedAt: number | null;
  readonly goneAt: number | null;
}

/** Options of {@link startPlatform}. */
export interface PlatformOptions {
  /** Ids of sandboxes that are left alone. */
  readonly leave?: ReadonlySet<string>;
  /** Folder with the socket of the guests' agent, where that is not the controller's. */
  readonly agent?: string;
  /** What a guest is to do, asked until it is started; by default what its sandbox says. */
  readonly roleOf?: (guest: Guest) => Role;
  /** Called once with each guest; a failure is a fault of the platform. */
  readonly onGuest?: (guest: Guest) => Promise<void>;
}

/** The platform below OpenSandbox: runs what sandboxes are to run, and gives guests their identities. */
export interface Platform extends AsyncDisposable {
  guests(): readonly Guest[];
  /** SIGKILL to everything in a guest. */
  kill(name: string): Promise<void>;
  /** SPIRE's entries of guests that it holds. */
  entries(): number;
  /** What went wrong in it. */
  readonly faults: readonly string[];
}

/** User of the executor's image, by which the guest's agent tells its processes apart (ADR 0031). */
const USER = 2000;
const EVERY_MS = 100;

const AS_SAID: Role = { kind: "run", tells: true };

type Known = { -readonly [Key in keyof Guest]: Guest[Key] } & {
  container: Promise<Container> | null;
  entry: string | null;
};

/**
 * Starts to act on the sandboxes that are there and come.
 *
 * A guest is a container of the executor's image on this machine: it has the command, the environment and
 * the user of the sandbox, and in place of an agent of its own the one agent of this run. Its entry is made
 * when the controller says so on the sandbox, and goes with the sandbox.
 */
export function startPlatform(
  stage: Stage,
  { leave = new Set(), agent = stage.workloadApi, roleOf = () => AS_SAID, onGuest }:
    PlatformOptions = {},
): Platform {
  const { peers, image, workloadApi } = stage;
  const { spire } = peers;
  const objects = openSandboxObjects(peers);
  const known = new Map<string, Known>();
  const faults: string[] = [];
  const stop = new AbortController();
  const tasks = createBackgroundTasks((error) => faults.push(String(error)));
  const folder = `${peers.folder}/guests`;

  const start = async (guest: Known, command = guest.command): Promise<Container> => {
    const bootstrap = `${folder}/opensandbox`;
    await Deno.mkdir(bootstrap, { recursive: true });
    // As the server's own: it replaces itself with the program.
    await Deno.writeTextFile(`${bootstrap}/bootstrap.sh`, '#!/bin/sh\nexec "$@"\n', {
      mode: 0o755,
    });
    guest.startedAt = performance.now();
    return await startContainer({
      inpod: `${peers.scripts}/inpod.sh`,
      podUid: guest.name,
      containerId: guest.name.replaceAll("-", "").repeat(2),
      image: image.layer,
      command,
      environment: {
        PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ...image.config.environment,
        ...guest.environment,
      },
      workingDirectory: image.config.workingDirectory,
      userId: USER,
      groupId: USER,
      mounts: [
        { source: agent, target: workloadApi, readOnly: true },
        { source: bootstrap, target: "/opt/opensandbox", readOnly: true },
      ],
      readOnlyRoot: false,
      noNewPrivileges: false,
      noCapabilities: false,
      folder: `${folder}/${guest.name}`,
      logFile: guest.logFile,
    });
  };

  const bind = async (guest: Known, spiffeId: string) => {
    const path = `spiffe://${spire.trustDomain}/`;
    if (!spiffeId.startsWith(`${path}ci/`) && !spiffeId.startsWith(`${path}ci-fork/`)) {
      throw new Error(`Bind sandbox "${guest.name}": "${spiffeId}" is no identity of a job`);
    }
    const said = await spire.server([
      "entry",
      "create",
      "-parentID",
      spire.parentId,
      "-spiffeID",
      spiffeId,
      "-selector",
      `unix:uid:${USER}`,
      "-x509SVIDTTL",
      "300",
    ]);
    guest.entry = /Entry ID\s*:\s*(\S+)/.exec(said)?.[1] ?? null;
    guest.spiffeId = spiffeId;
    guest.boundAt = performance.now();
  };

  const unbind = async (guest: Known) => {
    const { entry } = guest;
    if (entry === null) return;
    await spire.server(["entry", "delete", "-entryID", entry]);
    guest.entry = null;
  };

  const remove = async (guest: Known) => {
    await unbind(guest);
    await (await guest.container)?.kill();
    guest.goneAt = performance.now();
  };

  const act = (guest: Known, role: Role) => {
    if (role.kind === "wait") return;
    guest.container = start(guest, role.command);
    tasks.add((async () => {
      const exitCode = await (await guest.container)?.exited ?? 1;
      guest.exitCode = exitCode;
      guest.endedAt = performance.now();
      if (role.tells) await objects.ended(guest.name, exitCode === 0 ? "ok" : "fail");
    })());
  };

  const see = async (object: SandboxObject) => {
    const { name } = object;
    if (leave.has(name)) return;
    let guest = known.get(name);
    if (guest === undefined) {
      const job = jobIn(object.labels);
      guest = {
        name,
        job,
        command: object.command,
        environment: object.environment,
        nth: 1 + [...known.values()].filter((other) => other.job === job).length,
        logFile: `${peers.folder}/logs/guest-${name}.log`,
        seenAt: performance.now(),
        startedAt: null,
        boundAt: null,
        spiffeId: null,
        exitCode: null,
        endedAt: null,
        goneAt: null,
        container: null,
        entry: null,
      };
      known.set(name, guest);
      if (onGuest !== undefined) tasks.add(onGuest(guest));
    }
    if (object.allocated && guest.container === null) act(guest, roleOf(guest));
    const one = guest;
    const spiffeId = boundIn(object.labels);
    if (spiffeId !== null && one.spiffeId === null) await bind(one, spiffeId);
  };

  const look = async () => {
    const there = await objects.list();
    const names = new Set(there.map(({ name }) => name));
    // First: a successor of the same job may be there, and SPIRE keeps one entry of a kind.
    for (const guest of known.values()) {
      if (guest.goneAt === null && !names.has(guest.name)) await remove(guest);
    }
    for (const object of there) await see(object);
  };

  tasks.add((async () => {
    while (!stop.signal.aborted) {
      await look().catch((error) => faults.push(String(error)));
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  })());
  return {
    guests: () => [...known.values()],
    async kill(name) {
      await (await known.get(name)?.container)?.kill();
    },
    entries: () => [...known.values()].filter(({ entry }) => entry !== null).length,
    faults,
    async [Symbol.asyncDispose]() {
      stop.abort();
      for (const guest of known.values()) {
        await unbind(guest).catch((error) => faults.push(String(error)));
        await (await guest.container?.catch(() => null))?.kill();
      }
      await tasks.ended();
    },
  };
}
