import { startChild } from './child.ts'
import type { DurableQuestion } from './children/durable.ts'
import type { RecoveryQuestion } from './children/recovery.ts'
import { number, printTable, type Spread, spread } from './report.ts'

const takers = [
  { name: 'sqlite inbox', question: { events: 40_000, callers: 64 } },
  { name: 'a transaction each', question: { events: 4_000, callers: 64 } },
] as const

const finished = 1_000_000
const waiting = 10_000

export interface DurableResult {
  readonly inbox: Spread
  readonly single: Spread
  readonly ratio: Spread
  /** Milliseconds from opening a large file until its first event is handled. */
  readonly recovery: number
}

/** Measures events per second to the disk, without HTTP, and the time that opening a large file takes. */
export async function measureDurable(rounds: number): Promise<DurableResult> {
  const children = takers.map(({ name }) =>
    startChild(new URL('./children/durable.ts', import.meta.url), { core: 'measured', args: [name] }),
  )
  const samples: [number[], number[]] = [[], []]
  try {
    // The first round warms up the compiler.
    for (let round = 0; round <= rounds; round++) {
      for (const [index, { question }] of takers.entries()) {
        const perSecond = await children[index]?.ask<number>(question satisfies DurableQuestion)
        if (round > 0) samples[index]?.push(perSecond ?? Number.NaN)
      }
    }
  } finally {
    await Promise.all(children.map((child) => child.stop()))
  }
  const [inbox, single] = samples
  const ratios = inbox.map((perSecond, round) => perSecond / (single[round] ?? Number.NaN))
  return { inbox: spread(inbox), single: spread(single), ratio: spread(ratios), recovery: await measureRecovery() }
}

async function measureRecovery(): Promise<number> {
  const child = startChild(new URL('./children/recovery.ts', import.meta.url), { core: 'measured' })
  try {
    return await child.ask<number>({ finished, waiting } satisfies RecoveryQuestion)
  } finally {
    await child.stop()
  }
}

export function printDurable({ inbox, single, ratio, recovery }: DurableResult): void {
  const row = (name: string, { median, min, max }: Spread, digits = 0) => [
    name,
    number(median, digits),
    `${number(min, digits)}-${number(max, digits)}`,
  ]
  printTable(
    'Events per second to the disk, in process, 64 callers',
    ['', 'median', 'min-max'],
    [row('sqlite inbox', inbox), row('a transaction each', single), row('ratio', ratio, 1)],
  )
  console.log(
    `\nThe first of ${number(waiting)} waiting events is handled ${number(recovery)} ms after the start, in a file with ${number(finished)} finished events`,
  )
}
