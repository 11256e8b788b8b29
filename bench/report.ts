import { cpus } from 'node:os'

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const median = ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
  return { median, min: Math.min(...values), max: Math.max(...values) }
}

export const median = (values: readonly number[]): number => spread(values).median

export const number = (value: number, digits = 0) =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })

/** Prints a table as Markdown, under a heading. */
export function printTable(title: string, head: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]) => `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`
  console.log(['', `### ${title}`, '', line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n'))
}

/** Names the machine: absolute numbers hold only there. */
export function machine(): string {
  const [{ model = 'unknown' } = {}, ...others] = cpus()
  return `${model}, ${others.length + 1} cores, Node ${process.version.slice(1)}`
}
