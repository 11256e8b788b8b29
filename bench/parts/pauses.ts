import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withChild } from '../child.ts'
import type { Pauses, PausesQuestion } from '../children/pauses.ts'
import { median, number, printTable } from '../report.ts'

const waiting = 100_000
const seconds = 5

const ask = <Result>(work: (ask: <Answer>(question: PausesQuestion) => Promise<Answer>) => Promise<Result>) =>
  withChild(
    new URL('../children/pauses.ts', import.meta.url),
    { core: 'measured', env: { BENCH_HANDLER_MS: '20' } },
    (child) => work((question) => child.ask(question)),
  )

/** Fills an inbox, and measures it. Its process ends without closing it. */
const measureFilled = (path?: string): Promise<Pauses> =>
  ask(async (ask) => {
    await ask({ ask: 'open', path })
    await ask({ ask: 'fill', events: waiting })
    return ask<Pauses>({ ask: 'pauses', seconds })
  })

/** Measures a process that opens the file, until its events are in memory. */
const measureOpening = (path: string): Promise<Pauses> => ask((ask) => ask<Pauses>({ ask: 'open', path }))

/** Prints the longest turns of the event loop while 100,000 events wait. */
export async function measurePauses(rounds: number): Promise<void> {
  const samples: Record<string, Pauses[]> = { 'memory inbox': [], 'SQLite inbox': [], 'SQLite inbox, opening': [] }
  for (let round = 0; round < rounds; round++) {
    const folder = mkdtempSync(join(tmpdir(), 'sqlite-inbox-'))
    const path = join(folder, 'inbox.db')
    samples['memory inbox']?.push(await measureFilled())
    samples['SQLite inbox']?.push(await measureFilled(path))
    samples['SQLite inbox, opening']?.push(await measureOpening(path))
    rmSync(folder, { recursive: true })
  }
  const rows = Object.entries(samples).map(([name, own]) => {
    const medianOf = (field: keyof Pauses) => number(median(own.map((sample) => sample[field])), 1)
    return [name, medianOf('elapsed'), medianOf('computing'), medianOf('collection')]
  })
  const head = ['', 'longest turn', 'longest of computing', 'longest garbage collection']
  printTable(`Milliseconds of the event loop, ${number(waiting)} events waiting`, head, rows)
}
