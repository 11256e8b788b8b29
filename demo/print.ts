import { align, type Paint } from '../src/cli/shared/text.ts'
import type { DeliveryReport, Hooks, MediaEvent, RunReport } from '../src/index.ts'
import type { SummaryRow } from './ledger.ts'

const columns = ['time', '', 'outcome', 'status', 'type', 'media', 'took', '']
const widths = [-9, 8, 13, 6, 17, 8, -8, 0]

/** A printed line about a delivery or a handling. */
interface Line {
  readonly what: 'delivery' | 'handling'
  readonly outcome: string
  readonly style: 'dim' | 'green' | 'yellow' | 'red'
  /** The status of the answer to a delivery. */
  readonly status?: number
  readonly type?: string | undefined
  readonly mediaId?: string | undefined
  readonly durationMs?: number
  readonly note?: string | undefined
}

/** Prints deliveries and handlings as they happen. */
export interface Printer extends Required<Pick<Hooks, 'delivery' | 'handling'>> {
  columnNames(): void
  heading(text: string): void
  /** Prints a delivery rejected before it reached the receiver. */
  rejectedByLoadBalancer(): void
  finished(event: MediaEvent, work: string, durationMs: number): void
}

/** Creates a printer. Times are relative to this call. */
export function createPrinter(write: (line: string) => void, paint: Paint): Printer {
  const startedAt = performance.now()

  const line = ({ what, outcome, style, status, type = '-', mediaId = '-', durationMs, note = '' }: Line) => {
    const time = `${((performance.now() - startedAt) / 1_000).toFixed(3)} s`
    const took = durationMs === undefined ? '' : `${durationMs.toFixed(1)} ms`
    const cells = align([time, what, outcome, `${status ?? ''}`, type, mediaId.slice(0, 8), took, note], widths)
    write(
      cells
        .with(0, paint('dim', cells[0] ?? ''))
        .with(2, paint(style, cells[2] ?? ''))
        .join('  ')
        .trimEnd(),
    )
  }

  return {
    columnNames: () => write(paint('dim', align(columns, widths).join('  ').trimEnd())),
    heading: (text) => write(`\n${paint('bold', text)}`),

    delivery({ outcome, status, type, mediaId, durationMs, reason }: DeliveryReport) {
      const style = status !== 200 ? 'yellow' : outcome === 'accepted' ? 'green' : 'dim'
      line({ what: 'delivery', outcome, style, status, type, mediaId, durationMs, note: reason })
    },

    rejectedByLoadBalancer() {
      const note = 'by the load balancer, before the receiver'
      line({ what: 'delivery', outcome: 'rejected', style: 'yellow', status: 503, note })
    },

    finished({ type, mediaId }, work, durationMs) {
      line({ what: 'handling', outcome: 'handled', style: 'green', type, mediaId, durationMs, note: work })
    },

    handling({ outcome, attempt, type, mediaId, durationMs, error }: RunReport) {
      // The handlers report their work by `finished`.
      if (outcome === 'handled') return
      const note = `attempt ${attempt}: ${error}`
      line({ what: 'handling', outcome, style: 'red', type, mediaId, durationMs, note })
    },
  }
}

const counts = ['events', 'deliveries', 'rejected', 'acknowledged', 'duplicates', 'handled'] as const
const countWidths = [17, ...counts.map((count) => -count.length)]

/** Formats the summary as a table, with the verdict below it. */
export function summaryText(rows: readonly SummaryRow[], problems: readonly string[], paint: Paint): string {
  const tableRow = (name: string, cells: readonly (string | number)[]) =>
    align([name, ...cells.map(String)], countWidths)
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
      : [paint('green', 'Every event was handled exactly once, and every bad delivery was rejected.')]),
  ].join('\n')
}
