import { createFakeStore } from "../fakes/records.ts";
import { recordsContract } from "./records_suite.ts";

recordsContract("fake records", () => {
  const store = createFakeStore();
  return Promise.resolve({
    records: store.records(),
    other: store.records(),
    control: store.control,
    flags: store.flags,
    setFlags(flags) {
      store.setFlags("pod", flags);
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});
