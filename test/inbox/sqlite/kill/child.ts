import { setTimeout as pause } from 'node:timers/promises'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver } from '../../../../src/index.ts'
import { verify } from '../../../conformance/sending.ts'
import { seeded } from '../../../support/seeded.ts'
import { silent } from '../../../support/silent.ts'
import { handleWithEvidence, type KillTask, serve } from '../../kill/child.ts'
import { openWritten } from './written.ts'

// A process that will be killed. Beside its evidence, a handler writes a row for each event to the file of the inbox.

/** The part of its task that is about the file. */
export interface FileTask extends KillTask {
  readonly path: string
  /** `true`: the inbox uses a database that this process has opened. */
  readonly isGiven: boolean
}

const task = JSON.parse(process.argv[2] as string) as FileTask
const { path, isGiven, seed } = task
const random = seeded(seed + 1)
const file = isGiven ? { database: openWritten(path).database } : { path }
const receiver = createReceiver({
  verify,
  inbox: sqliteInbox({ ...file, maxWaiting: 1_000_000 }),
  retry: { attempts: 10, baseMs: 10 },
  logger: silent,
})
const unlucky = (share: number) => {
  if (random() < share) throw new Error('unlucky')
}

handleWithEvidence(receiver, task)
receiver.onAny(
  async ({ mediaId }, { transaction }) => {
    await pause(random() * 3)
    unlucky(0.05)
    await transaction((database) => {
      database.prepare('INSERT INTO written VALUES (?)').run(mediaId)
      unlucky(0.03)
    })
    await pause(random() * 3)
    unlucky(0.03)
  },
  { name: 'writes' },
)
serve(receiver)
