/** The same without the members that are undefined: what a port takes for "not asked for". */
export function withoutUndefined<T extends object>(members: T): WithoutUndefined<T> {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  // Just those that may be undefined are missing, and the type says that they may be.
  return Object.fromEntries(entries) as WithoutUndefined<T>;
}

/** `T` whose members that may be undefined may be absent instead. */
export type WithoutUndefined<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };
