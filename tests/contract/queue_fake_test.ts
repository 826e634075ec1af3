import { systemClock } from "../../lib/clock.ts";
import { createFakeQueue } from "../fakes/queue.ts";
import { queueContract } from "./queue_suite.ts";

queueContract("fake queue", () => {
  const queue = createFakeQueue({ clock: systemClock });
  return Promise.resolve({
    queue,
    deleteConsumer(backend) {
      queue.deleteConsumer(backend);
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});
