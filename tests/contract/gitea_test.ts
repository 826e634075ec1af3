import { createFakeForge } from "../fakes/forge/fake_forge.ts";
import { GITEA_CASES, type GiteaSubject } from "./gitea_cases.ts";

/** The same cases run on a real Gitea in `tests/e2e/gitea_contract.ts`. */
function subject(): GiteaSubject {
  const fake = createFakeForge();
  return {
    url: fake.url,
    fetch: fake.fetch,
    registrationToken: () => Promise.resolve(fake.forge.registrationToken),
    queueJob: () => {
      const [jobId] = fake.queue(1);
      return Promise.resolve({
        cancel: () => Promise.resolve(fake.forge.cancel(jobId ?? 0)),
      });
    },
  };
}

for (const { name, run } of GITEA_CASES) {
  Deno.test(`on the sample forge: ${name}`, () => run(subject()));
}
