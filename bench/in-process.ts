import { startChild } from './child.ts'
import { number, printTable, type Spread, spread } from './report.ts'

const deliveriesARound = 100_000

export interface InProcessResult {
  readonly handWritten: Spread
  readonly ours: Spread
  readonly ratio: Spread
}

/** Measures nanoseconds per delivery without HTTP. Each pipeline has its own process, and they are measured in turns. */
export async function measureInProcess(rounds: number): Promise<InProcessResult> {
  const start = (name: string) =>
    startChild(new URL('./children/in-process.ts', import.meta.url), {
      core: 'measured',
      args: [name],
      flags: ['--expose-gc'],
    })
  const children = [start('hand-written'), start('ours')] as const
  const samples = [[], []] as [number[], number[]]
  try {
    // The first round warms up the compiler and fills the stores.
    for (let round = 0; round <= rounds; round++) {
      for (const [index, child] of children.entries()) {
        const nanoseconds = await child.ask<number>(deliveriesARound)
        if (round > 0) samples[index]?.push(nanoseconds)
      }
    }
  } finally {
    await Promise.all(children.map((child) => child.stop()))
  }
  const [handWritten, ours] = samples
  const ratios = ours.map((nanoseconds, round) => nanoseconds / (handWritten[round] ?? Number.NaN))
  return { handWritten: spread(handWritten), ours: spread(ours), ratio: spread(ratios) }
}

export function printInProcess({ handWritten, ours, ratio }: InProcessResult): void {
  const row = (name: string, { median, min, max }: Spread, digits = 0) => [
    name,
    number(median, digits),
    `${number(min, digits)}-${number(max, digits)}`,
  ]
  printTable(
    'Nanoseconds per delivery in process',
    ['pipeline', 'median', 'min-max'],
    [row('hand-written', handWritten), row('ours', ours), row('ours / hand-written', ratio, 2)],
  )
}
