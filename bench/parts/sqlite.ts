import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withChild } from '../child.ts'
import type { RecoveryQuestion } from '../children/recovery.ts'
import { inTurns, type Measured, printCosts } from '../measure.ts'
import { number, printTable, spread } from '../report.ts'
import { costInProcess } from './in-process.ts'

const finished = 300_000
const waiting = 10_000
const recoveries = 5

/** Prints the cost of a delivery whose event is on the disk before it is acknowledged. */
export async function measureSqlite(rounds: number): Promise<void> {
  const callers = 64
  const measured: Measured[] = [
    {
      name: 'by hand, a transaction for each event',
      measure: () => costInProcess({ taker: 'byHandWithSqlite' }, { callers, deliveries: 3_000 }),
    },
    {
      name: 'the receiver, SQLite inbox',
      beside: ['by hand, a transaction for each event'],
      measure: () => costInProcess({ taker: 'oursWithSqlite' }, { callers, deliveries: 30_000 }),
    },
  ]
  printCosts(`A delivery to the disk, ${callers} at a time`, measured, await inTurns(measured, rounds))
}

/** Makes a copy of the files of a folder, and drops them from memory. */
function coldCopy(folder: string): string {
  const copy = `${folder}-copy`
  rmSync(copy, { recursive: true, force: true })
  cpSync(folder, copy, { recursive: true })
  // Writes the file to the disk, and drops its pages from the cache.
  const drop = ['oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']
  for (const name of readdirSync(copy)) execFileSync('dd', [`of=${join(copy, name)}`, ...drop])
  return copy
}

/** Prints the time from the opening of a file until the first of its waiting events is handled. */
export async function measureRecovery(): Promise<void> {
  const ask = <Answer>(question: RecoveryQuestion) =>
    withChild(new URL('../children/recovery.ts', import.meta.url), { core: 'measured' }, (child) =>
      child.ask<Answer>(question),
    )
  const folder = mkdtempSync(join(tmpdir(), 'sqlite-inbox-'))
  const times: number[] = []
  try {
    await ask({ ask: 'fill', path: join(folder, 'inbox.db'), finished, waiting })
    while (times.length < recoveries) {
      times.push(await ask<number>({ ask: 'recover', path: join(coldCopy(folder), 'inbox.db') }))
    }
  } finally {
    rmSync(folder, { recursive: true })
    rmSync(`${folder}-copy`, { recursive: true, force: true })
  }
  const { median, min, max } = spread(times)
  const title = `Recovery after a crash, ${number(waiting)} of ${number(finished + waiting)} events waiting`
  printTable(
    title,
    ['', 'ms (spread)'],
    [['until the first is handled, the file not in memory', `${number(median)} (${number(min)} to ${number(max)})`]],
  )
}
