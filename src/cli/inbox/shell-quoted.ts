import { plain } from '../text.ts'

/** A text as an argument to paste: the shell passes it on as it is, and it does not steer the terminal. */
export function shellQuoted(text: string): string {
  if (/^[\w.:@/+,-]+$/.test(text)) return text
  if (plain(text) === text) return `'${text.replaceAll("'", `'\\''`)}'`
  return `$'${Array.from(text, escaped).join('')}'`
}

function escaped(character: string): string {
  if (character === "'" || character === '\\') return `\\${character}`
  if (plain(character) === character) return character
  // In octal, of which shells read three digits and no more.
  return Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
