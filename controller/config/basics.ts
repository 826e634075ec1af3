import type { Component, Config } from "./config.ts";

/** What the sections of the configuration depend on. */
export interface Basics {
  readonly profile: Config["profile"];
  readonly executors: Config["executors"];
  readonly components: ReadonlySet<Component>;
}
