import Libsql from 'libsql'
import type { Handle } from '../../src/inbox/inbox.ts'
import { answerWith } from '../child.ts'
import { hostOf } from '../host.ts'
import { sqliteInbox, temporaryFile } from '../ours.ts'

/** The number of events in the file. */
export interface RecoveryQuestion {
  readonly finished: number
  readonly waiting: number
}

/** Writes the events straight into the tables, which takes seconds instead of minutes. */
function fill(path: string, { finished, waiting }: RecoveryQuestion): void {
  const database = new Libsql(path)
  const series = (count: number) =>
    `WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series LIMIT ${count})`
  database.exec('PRAGMA synchronous = OFF')
  database.exec(
    `INSERT INTO inbox_key (hash, accepted_at) ${series(finished + waiting)} SELECT hex(randomblob(11)), ${Date.now()} FROM series`,
  )
  const event = (key: string) =>
    `'{"type":"encoding.finished","key":"' || ${key} || '","format":"flat","mediaId":"' || ${key} || '",` +
    `"qualities":["360p","720p"],"status":"done","test":false,"payload":{"type":"encoding.finished"}}'`
  database.exec(
    `INSERT INTO inbox_event (id, event, received_at) ${series(waiting)}
     SELECT ${finished} + n, ${event('n')}, ${Date.now()} FROM series`,
  )
  database.close()
}

/** Calls back for each event, and handles it. */
const handledAt =
  (onEvent: () => void): Handle =>
  async () => {
    onEvent()
    return { status: 'done' }
  }

/** Measures the milliseconds from opening the file until the first of its events is handled. */
async function recover(question: RecoveryQuestion): Promise<number> {
  const path = temporaryFile()
  // Creates the tables.
  await sqliteInbox({ path })
    .open(hostOf(handledAt(() => {})))
    .close()
  fill(path, question)
  const start = performance.now()
  await new Promise<void>((resolve) => sqliteInbox({ path }).open(hostOf(handledAt(resolve))))
  return performance.now() - start
}

answerWith<RecoveryQuestion>(recover)
