import { askApi } from "../../clients/nats/api.ts";
import { createQueue } from "../../clients/nats/queue.ts";
import { DEPS, NAMES, openNatsWorld } from "../support/nats_world.ts";
import { queueContract } from "./queue_suite.ts";

queueContract("NATS queue", async () => {
  const world = await openNatsWorld();
  return {
    queue: createQueue(world.connection, { ...NAMES, ...DEPS }),
    async deleteConsumer(backend) {
      const path = `CONSUMER.DELETE.${NAMES.stream}.${backend}`;
      await askApi(world.connection, { path }, { signal: AbortSignal.timeout(5_000) });
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
});
