import assert from "node:assert/strict";
import { NAMESPACE } from "./cluster.ts";
import { type Stage, userOf } from "./stage.ts";

/** Each verb that the manifests give the controller. */
const GIVEN = [
  ...["get", "list", "watch", "create", "patch", "delete"].map((verb) => `${verb} pods`),
  ...["list", "create"].map((verb) => `${verb} events`),
  ...["get", "list", "watch", "create", "patch"].map((verb) => `${verb} leases`),
  ...["get", "list", "create", "delete"].map((verb) => `${verb} clusterstaticentries`),
];

/** From the API server's audit log: everything was allowed, and what was allowed was used. */
export async function checkRightsUsed({ report, audit }: Stage): Promise<void> {
  await report.check("the controllers used their rights, and asked for no others", async () => {
    const controller = userOf(NAMESPACE.controller, "controller");
    // kubectl --as of the test is somebody else's doing.
    const records = (await audit.records()).filter((one) =>
      one.user === controller && !one.userAgent.startsWith("kubectl")
    );
    assert.ok(records.length > 0, "No request of a controller: play another part before");
    const refused = records.filter((one) =>
      one.code === 401 || (one.code === 403 && !(one.resource === "pods" && one.verb === "create"))
    );
    assert.deepEqual(refused.slice(0, 3), []);
    const used = new Set(records.map((one) => `${one.verb} ${one.resource}`));
    assert.deepEqual([...used].filter((one) => !GIVEN.includes(one)), []);
    const unused = GIVEN.filter((one) => !used.has(one));
    const secrets = records.filter((one) => one.resource === "secrets");
    assert.equal(secrets.length, 0);
    return `${records.length} requests, ${used.size} of ${GIVEN.length} rights used${
      unused.length === 0 ? "" : `, not in this run: ${unused.join(", ")}`
    }`;
  });
}
