import { styleText } from 'node:util'

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red'

/** Gives a text a style, where the output understands colours. */
export type Paint = (style: Style, text: string) => string

export const paintIf =
  (colour: boolean): Paint =>
  (style, text) =>
    // It would judge the process's own output, whatever this one is.
    colour ? styleText(style, text, { validateStream: false }) : text

/** Pads each cell to the width of its column, in characters; a negative width aligns to the right. */
export function align(cells: readonly string[], widths: readonly number[]): string[] {
  return cells.map((cell, index) => {
    const width = widths[index] ?? 0
    return width < 0 ? cell.padStart(-width) : cell.padEnd(width)
  })
}

/** Rows with their columns aligned, the last one as long as it is. */
export function table(rows: readonly (readonly string[])[], indent = ''): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) => `${indent}${align(row, widths).join('  ')}`.trimEnd()).join('\n')
}

/** A text that somebody else wrote, without what would steer a terminal or break the line. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`
  })
}
