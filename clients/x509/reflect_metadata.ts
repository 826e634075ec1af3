/**
 * The three functions of the `Reflect` metadata proposal that `@peculiar/x509` needs before it loads
 * (its container refuses to start without). Runs at import, because the package's own imports run
 * then too; does nothing when a complete implementation is there already.
 */
type Key = string | symbol;
const entries = new WeakMap<object, Map<Key, unknown>>();

const metadata = {
  defineMetadata(key: Key, value: unknown, target: object): void {
    const own = entries.get(target) ?? new Map<Key, unknown>();
    entries.set(target, own.set(key, value));
  },
  getOwnMetadata(key: Key, target: object): unknown {
    return entries.get(target)?.get(key);
  },
  /** Looks along the prototypes too. */
  getMetadata(key: Key, target: object): unknown {
    for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
      const own = entries.get(at);
      if (own?.has(key)) return own.get(key);
    }
    return undefined;
  },
};

if (!("getMetadata" in Reflect)) Object.assign(Reflect, metadata);
