/** What an error says, without its causes; anything else that was thrown as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Message of an error, or its name, followed by those of its causes; five of them at most. */
export function errorText(error: unknown): string {
  const texts: string[] = [];
  let next: unknown = error;
  for (let depth = 0; depth < 5 && next !== undefined; depth++) {
    texts.push(next instanceof Error ? next.message || next.name : String(next));
    next = next instanceof Error ? next.cause : undefined;
  }
  return texts.join(": ");
}
