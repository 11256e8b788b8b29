import Libsql from 'libsql'
import { answerWith } from '../child.ts'
import { sqliteInbox, temporaryFile } from '../ours.ts'

/** How many events the file has. */
export interface RecoveryQuestion {
  readonly finished: number
  readonly waiting: number
}

/** Fills a file as so many events would have. */
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

/** Milliseconds from opening the file until the first of its events is handled. */
async function recover(question: RecoveryQuestion): Promise<number> {
  const path = temporaryFile()
  await sqliteInbox({ path }).close()
  fill(path, question)
  const start = performance.now()
  const inbox = sqliteInbox({ path })
  await new Promise<void>((resolve) => {
    void inbox.start(async () => {
      resolve()
      return { status: 'done' }
    }, console)
  })
  return performance.now() - start
}

answerWith<RecoveryQuestion>(recover)
