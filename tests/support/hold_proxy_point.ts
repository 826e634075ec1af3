/**
 * A point on the way of something that is held open from outside: what matches stays where it is
 * until it is released or dropped. Disposing releases.
 */
export interface HoldPoint<T> extends Disposable {
  /** Resolves to the first that was held. */
  readonly reached: Promise<T>;
  /** How many were held so far. */
  readonly count: number;
  /** Lets go on what is held; later ones pass. */
  release(): void;
  /** Loses what is held, as a network does; later ones pass. */
  drop(): void;
}

/** Points that a proxy looks at, in the order in which they were set. */
export interface HoldPoints<T> {
  /** Holds everything that matches from now on. */
  hold(match: (item: T) => boolean): HoldPoint<T>;
  /** Resolves to what is to become of the item: at once if nothing holds it. */
  pass(item: T): Promise<"pass" | "drop">;
  /** True if a point would hold it now. */
  holds(item: T): boolean;
}

/** Makes {@link HoldPoints} without a point. */
export function createHoldPoints<T>(): HoldPoints<T> {
  interface Active {
    readonly match: (item: T) => boolean;
    readonly first: PromiseWithResolvers<T>;
    readonly end: PromiseWithResolvers<"pass" | "drop">;
    count: number;
  }
  const active = new Set<Active>();
  const find = (item: T) => [...active].find(({ match }) => match(item));
  return {
    hold(match) {
      const point: Active = {
        match,
        first: Promise.withResolvers(),
        end: Promise.withResolvers(),
        count: 0,
      };
      active.add(point);
      const finish = (fate: "pass" | "drop") => {
        active.delete(point);
        point.end.resolve(fate);
      };
      return {
        reached: point.first.promise,
        get count() {
          return point.count;
        },
        release: () => finish("pass"),
        drop: () => finish("drop"),
        [Symbol.dispose]: () => finish("pass"),
      };
    },
    holds: (item) => find(item) !== undefined,
    pass(item) {
      const point = find(item);
      if (point === undefined) return Promise.resolve("pass");
      point.count++;
      point.first.resolve(item);
      return point.end.promise;
    },
  };
}
