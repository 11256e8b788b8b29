import { styleText } from 'node:util'

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red'

export type Paint = (style: Style, text: string) => string

export const paintIf =
  (colour: boolean): Paint =>
  (style, text) =>
    // `validateStream` would check process.stdout, which may not be our output.
    colour ? styleText(style, text, { validateStream: false }) : text

/** Pads cells to column widths (characters). A negative width aligns right. */
export function align(cells: readonly string[], widths: readonly number[]): string[] {
  return cells.map((cell, index) => {
    const width = widths[index] ?? 0
    return width < 0 ? cell.padStart(-width) : cell.padEnd(width)
  })
}

/** Widest padded column (characters). */
const maxCellWidth = 48

/** Aligns columns. A very long cell shifts only its own row. */
export function table(rows: readonly (readonly string[])[], indent = ''): string {
  const widths =
    rows[0]?.map((_, column) =>
      Math.max(0, ...rows.map((row) => row[column]?.length ?? 0).filter((width) => width <= maxCellWidth)),
    ) ?? []
  return rows.map((row) => `${indent}${align(row, widths).join('  ')}`.trimEnd()).join('\n')
}

/** Escapes characters that could control a terminal or break the line. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`
  })
}

/** Quotes a shell argument to paste. The result can't control the terminal either. */
export function shellQuoted(text: string): string {
  if (/^[\w.:@/+,-]+$/.test(text)) return text
  if (plain(text) === text) return `'${text.replaceAll("'", `'\\''`)}'`
  return `$'${Array.from(text, escaped).join('')}'`
}

function escaped(character: string): string {
  if (character === "'" || character === '\\') return `\\${character}`
  if (plain(character) === character) return character
  // Octal: shells read exactly three digits.
  return Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}

/** JSON safe for a terminal: JSON.stringify escapes only some control characters. */
export const plainJson = (value: unknown, indent?: number): string =>
  // Unescaped line feeds come only from the indentation.
  JSON.stringify(value, undefined, indent).replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()].map((at) => `\\u${hex(character.charCodeAt(at))}`).join(''),
  )

const hex = (unit: number): string => unit.toString(16).padStart(4, '0')
