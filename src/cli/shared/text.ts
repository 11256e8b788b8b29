import { styleText } from 'node:util'

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red'

/** Styles a text, if the output shows colours. */
export type Paint = (style: Style, text: string) => string

export const paintIf =
  (colour: boolean): Paint =>
  (style, text) =>
    // The validation would check the output of the process, which may not be this one.
    colour ? styleText(style, text, { validateStream: false }) : text

/** Pads each cell to the width of its column, in characters. A negative width aligns to the right. */
export function align(cells: readonly string[], widths: readonly number[]): string[] {
  return cells.map((cell, index) => {
    const width = widths[index] ?? 0
    return width < 0 ? cell.padStart(-width) : cell.padEnd(width)
  })
}

/** Maximum width that cells are padded to, in characters. */
const maxCellWidth = 48

/** Aligns the columns of rows. The last column is not padded, and a very long cell moves only the rest of its own row. */
export function table(rows: readonly (readonly string[])[], indent = ''): string {
  const widths =
    rows[0]?.map((_, column) =>
      Math.max(0, ...rows.map((row) => row[column]?.length ?? 0).filter((width) => width <= maxCellWidth)),
    ) ?? []
  return rows.map((row) => `${indent}${align(row, widths).join('  ')}`.trimEnd()).join('\n')
}

/** Escapes the characters of an untrusted text that could control a terminal or break the line. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`
  })
}

/** Quotes a text as an argument to paste: a shell passes it on unchanged, and it cannot control the terminal. */
export function shellQuoted(text: string): string {
  if (/^[\w.:@/+,-]+$/.test(text)) return text
  if (plain(text) === text) return `'${text.replaceAll("'", `'\\''`)}'`
  return `$'${Array.from(text, escaped).join('')}'`
}

function escaped(character: string): string {
  if (character === "'" || character === '\\') return `\\${character}`
  if (plain(character) === character) return character
  // In octal, because shells read exactly three digits of it.
  return Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}

/**
 * Writes JSON in which every character that could control a terminal is escaped. JSON.stringify escapes only some of them.
 * @param indent the number of spaces by which each level is indented, or nothing for one line
 */
export const plainJson = (value: unknown, indent?: number): string =>
  // A line feed is one of the indentation: JSON.stringify escapes those in texts.
  JSON.stringify(value, undefined, indent).replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()].map((at) => `\\u${hex(character.charCodeAt(at))}`).join(''),
  )

const hex = (unit: number): string => unit.toString(16).padStart(4, '0')
