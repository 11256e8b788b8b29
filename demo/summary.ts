import { align, type Paint } from '../src/cli/shared/text.ts'
import type { SummaryRow } from './ledger.ts'

const counts = ['events', 'deliveries', 'refused', 'acknowledged', 'duplicates', 'handled'] as const
const widths = [17, ...counts.map((count) => -count.length)]

/** The summary as a table, and the verdict under it. */
export function summaryText(rows: readonly SummaryRow[], problems: readonly string[], paint: Paint): string {
  const tableRow = (name: string, cells: readonly (string | number)[]) =>
    align([name, ...cells.map(String)], widths)
      .join('  ')
      .trimEnd()
  const cellsOf = (row: SummaryRow) => counts.map((count) => row[count] ?? '')
  const totals = counts.map((count) => rows.reduce((sum, row) => sum + (row[count] ?? 0), 0))
  return [
    paint('bold', tableRow('type', counts)),
    ...rows.map((row) => tableRow(row.name, cellsOf(row))),
    paint('bold', tableRow('all', totals)),
    '',
    ...problems.map((problem) => paint('red', `WRONG: ${problem}`)),
    ...(problems.length > 0
      ? []
      : [paint('green', 'Every event was handled exactly once, and everything bad was refused.')]),
  ].join('\n')
}
