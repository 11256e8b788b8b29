import { styleText } from 'node:util'

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red'

/** Gives a text a style, where the output understands colours. */
export type Paint = (style: Style, text: string) => string

export const paintIf =
  (colour: boolean): Paint =>
  (style, text) =>
    colour ? styleText(style, text) : text

/** Pads each cell to the width of its column, in characters; a negative width aligns to the right. */
export function align(cells: readonly string[], widths: readonly number[]): string[] {
  return cells.map((cell, index) => {
    const width = widths[index] ?? 0
    return width < 0 ? cell.padStart(-width) : cell.padEnd(width)
  })
}
