import { createGiteaApi, type GiteaApi, type RepositoryFile } from "../support/gitea_api.ts";
import type { Peers } from "../support/peers.ts";

/** Repositories, users and settings that the runs need, on a fresh Gitea. */
export interface Grounds {
  readonly peers: Peers;
  /** The administrator, who owns both repositories. */
  readonly owner: GiteaApi;
  /** Somebody who may read the public repository only. */
  readonly stranger: GiteaApi;
  /** The private repository with every workflow. */
  readonly closed: string;
  /** The public one with the same files, for pushes and pull requests. */
  readonly open: string;
}

/** What the planted secret of both repositories says; a digest of it is in the expectations. */
export const doorCode = "open-sesame-4711";

/** Makes the {@link Grounds}; once per Gitea. Rejects with the call that Gitea refused. */
export async function prepareGrounds(peers: Peers, signal: AbortSignal): Promise<Grounds> {
  const { admin, address, token } = peers.gitea;
  const owner = createGiteaApi({
    // Past the proxy that ROOT_URL leads through: what passes there is the jobs' doing alone.
    url: `http://${address.hostname}:${address.port}`,
    user: admin.name,
    password: admin.password,
    token,
    signal,
  });
  const files = await repositoryFiles();
  const repositories = { closed: `${admin.name}/e2e`, open: `${admin.name}/open` };
  await owner.createRepository("e2e", { private: true });
  await owner.createRepository("open", { private: false });
  for (const repository of Object.values(repositories)) {
    await owner.commit(repository, files);
    await owner.setSecret(repository, "DOOR_CODE", doorCode);
  }
  await owner.setVariable(repositories.closed, "HOUSE_COLOUR", "blue");
  await owner.setVariable(repositories.closed, "SPIRE_AGENT", `${peers.bin}/spire-agent`);
  const stranger = await owner.createUser("stranger");
  return { peers, owner, stranger, ...repositories };
}

/** The files of both repositories: `workflows/` and `fixtures/` of this folder, where Gitea looks. */
async function repositoryFiles(): Promise<RepositoryFile[]> {
  const files: RepositoryFile[] = [];
  const add = async (folder: URL, to: string): Promise<void> => {
    for await (const entry of Deno.readDir(folder)) {
      if (entry.isDirectory) {
        await add(new URL(`${entry.name}/`, folder), `${to}${entry.name}/`);
      } else {
        const content = await Deno.readTextFile(new URL(entry.name, folder));
        files.push({ path: `${to}${entry.name}`, content });
      }
    }
  };
  await add(new URL("workflows/", import.meta.url), ".gitea/workflows/");
  await add(new URL("fixtures/actions/", import.meta.url), ".gitea/actions/");
  await add(new URL("fixtures/files/", import.meta.url), "");
  return files;
}
