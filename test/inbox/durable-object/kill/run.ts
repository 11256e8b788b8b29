import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../../../support/seeded.ts'
import { judge, type KillReport, type Moment } from '../../kill/judge.ts'
import { Sender } from '../../kill/sender.ts'
import { App } from '../app.ts'

const shards = 4

/**
 * Kills a workerd that accepts and handles at full speed through several isolates, again and again, and starts the next one
 * on its disk. In between, objects are aborted, as the platform does when it moves them.
 */
export async function killRun(binary: string, kills: number, seed: number): Promise<KillReport> {
  const random = seeded(seed)
  const app = await App.make(binary, { shards, isolates: 3, unlucky: 0.05 })
  let isFlooding = true
  const sender = new Sender({ urls: () => (isFlooding ? app.urls : []), random, connections: 24 })
  const killed: Moment[] = []
  const settled: Moment[] = []
  const settle = async () => {
    let at = Date.now()
    // On a busy machine an object may not answer in time.
    while ((await app.unfinished().catch(() => 1)) > 0) {
      await sleep(20)
      at = Date.now()
    }
    settled.push({ process: app.name, at })
  }
  try {
    await app.start()
    for (let i = 0; i < kills; i++) {
      // After crashes in a row an inbox searches for the event that causes them, and handles few at a time until it is
      // found.
      if (i % 3 === 0) {
        isFlooding = false
        await settle()
        isFlooding = true
      }
      await sender.acknowledgesMore(random() < 0.1 ? 0 : 20)
      if (random() < 0.3) await app.ask(`/abort?key=${Math.floor(random() * shards)}`)
      await sleep(random() * 600)
      killed.push({ process: app.name, at: Date.now() })
      await app.stop('SIGKILL')
      await app.start()
    }
    await sender.stop()
    await settle()
    const { acknowledged } = sender
    const written = await app.ask<string[]>('/written')
    const { length: deadLetters } = await app.ask<unknown[]>('/dead-letters')
    const runs = app.evidence.runs()
    const kept = [...killed, ...app.evidence.aborts()]
    const report = judge({ acknowledged, handlers: ['first', 'second'], runs, kills: kept, settled, deadLetters })
    return { ...report, faults: [...report.faults, ...faultsOf(written, acknowledged)] }
  } finally {
    await sender.stop()
    await app.remove()
  }
}

/** Returns the reasons why the rows do not show that a transaction is committed once. */
function faultsOf(written: readonly string[], acknowledged: ReadonlySet<string>): string[] {
  const rows = new Set(written)
  const missing = [...acknowledged].filter((mediaId) => !rows.has(mediaId))
  return [
    ...missing.map((mediaId) => `${mediaId} was acknowledged, and its transaction was never committed`),
    ...(written.length > rows.size ? [`${written.length - rows.size} transactions were committed again`] : []),
  ]
}
