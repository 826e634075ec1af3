import { createFakeClock } from "../../lib/fake_clock.ts";
import { createFakeLeaseServer } from "../fakes/lease_server.ts";
import { createProcessClock } from "../fakes/process_clock.ts";
import { leaseContract } from "./lease_suite.ts";

leaseContract("fake lease", () => {
  const clock = createFakeClock();
  const server = createFakeLeaseServer(clock);
  return Promise.resolve({
    store: server.seenBy(createProcessClock(clock)),
    other: server.seenBy(createProcessClock(clock)),
    delete() {
      server.delete();
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});
