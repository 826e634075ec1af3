/**
 * Words from outside as part of a sentence: one line without control characters and blanks around it,
 * at most `max` UTF-16 units long.
 */
export function oneLine(text: string, max = 300): string {
  // deno-lint-ignore no-control-regex -- they are what is taken out
  return text.replace(/[\x00-\x1f\x7f]+/g, " ").trim().slice(0, max);
}
