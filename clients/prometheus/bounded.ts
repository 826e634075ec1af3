/**
 * Lets only so many different values through; later ones become `other`. Keeps labels that come from
 * outside (methods, codes, sources) from growing without end.
 */
export function createBounded(limit: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= limit || !/^[A-Za-z0-9_./:-]{1,64}$/.test(value)) return "other";
    known.add(value);
    return value;
  };
}
