import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openInboxFile } from '../../../../src/inbox/sqlite.ts'
import { seeded } from '../../../support/seeded.ts'
import { handlers } from '../../kill/child.ts'
import { judge, type KillReport, type Moment } from '../../kill/judge.ts'
import { Killed } from '../../kill/killed.ts'
import { readRuns } from '../../kill/runs.ts'
import { Sender } from '../../kill/sender.ts'
import { bundled } from '../../postgres/forked.ts'
import type { FileTask } from './child.ts'
import { openWritten } from './written.ts'

/** Kills a process that accepts and handles at full speed, again and again, and starts the next one on its file. */
export async function killRun(kills: number, seed: number): Promise<KillReport> {
  const random = seeded(seed)
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-kill-run-'))
  const path = join(folder, 'inbox.db')
  openWritten(path).database.close()
  const program = await bundled(new URL('./child.ts', import.meta.url), folder)
  let started = 0
  const start = () => {
    const isGiven = started % 2 === 1
    const name = `process-${started++}`
    const task: FileTask = { name, folder, seed: Math.floor(random() * 1e9), path, isGiven }
    return Killed.start(program, task)
  }
  let child = await start()
  let isFlooding = true
  const sender = new Sender({ urls: () => (isFlooding ? child.urls : []), random, connections: 24 })
  const killed: Moment[] = []
  const settled: Moment[] = []
  try {
    for (let i = 0; i < kills; i++) {
      // After crashes in a row an inbox searches for the event that causes them, and handles few at a time until it is
      // found.
      if (i % 3 === 0) {
        isFlooding = false
        settled.push(await child.settled())
        isFlooding = true
      }
      await sender.acknowledgesMore(random() < 0.1 ? 0 : 20)
      await sleep(random() * 600)
      killed.push(await child.kill())
      child = await start()
    }
    await sender.stop()
    await child.settled()
    await child.end()
    const { acknowledged } = sender
    const deadLetters = countDeadLetters(path)
    const report = judge({ acknowledged, handlers, runs: readRuns(folder), kills: killed, settled, deadLetters })
    return { ...report, faults: [...report.faults, ...faultsOf(path, acknowledged)] }
  } finally {
    await sender.stop()
    await child.end()
    await rm(folder, { recursive: true })
  }
}

/** Returns the reasons why the rows do not show that a transaction is committed once. */
function faultsOf(path: string, acknowledged: ReadonlySet<string>): string[] {
  const { database, counts } = openWritten(path)
  const rows = counts()
  database.close()
  const missing = [...acknowledged].filter((mediaId) => !rows.has(mediaId))
  const doubled = [...rows].filter(([, count]) => count > 1)
  return [
    ...missing.map((mediaId) => `${mediaId} was acknowledged, and its transaction was never committed`),
    ...doubled.map(([mediaId, count]) => `the transaction of ${mediaId} was committed ${count} times`),
  ]
}

function countDeadLetters(path: string): number {
  const file = openInboxFile(path)
  try {
    return file.stats().deadLetters
  } finally {
    file.close()
  }
}
