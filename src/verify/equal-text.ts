/**
 * Compares a text with the one that was expected, in a time that depends on the length of the expected one alone:
 * every code unit is looked at, whatever the others were.
 */
export function equalText(text: string, expected: string): boolean {
  let difference = text.length ^ expected.length
  for (let i = 0; i < expected.length; i++) difference |= text.charCodeAt(i) ^ expected.charCodeAt(i)
  return difference === 0
}
