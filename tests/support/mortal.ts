/**
 * A port as a process sees it that may be killed: once `alive()` is false every call is rejected
 * before it reaches the server. What was on its way before is still done there.
 */
export function mortal<T extends object>(port: T, alive: () => boolean): T {
  return new Proxy(port, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (!alive()) {
          const refused = Promise.reject(new Error(`Call ${String(key)}: the process is dead`));
          refused.catch(() => {}); // Methods that only subscribe are not awaited.
          return refused;
        }
        return Reflect.apply(value, target, args);
      };
    },
  });
}
