import { Job } from '../../../src/inbox/engine/job.ts'
import { writeHandled } from '../../../src/inbox/sql/handled-record.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { hashKey } from '../../../src/inbox/sqlite/hash.ts'
import type { SqliteDatabase } from '../../../src/inbox/sqlite.ts'
import { inTransaction } from '../../../src/inbox/sqlite-tables/database.ts'
import { SqliteEvents } from '../../../src/inbox/sqlite-tables/events.ts'
import { hashMedia } from '../../../src/inbox/sqlite-tables/schema.ts'
import { eventOf } from '../../support/inbox.ts'
import { started } from './sqlite-tests.ts'

/** Makes a file with events that have been handled, oldest first: their keys are `key 0`, `key 1` and so on. */
export async function seedHandled(
  path: string,
  count: number,
  eventAt: (index: number) => { readonly type?: string; readonly mediaId?: string },
): Promise<void> {
  await started({ path }).inbox.close()
  const database = openDatabase(path)
  const remember = database.prepare('INSERT INTO inbox_key (hash, accepted_at, media) VALUES (?, ?, ?)')
  const insert = database.prepare('INSERT INTO inbox_handled (id, record) VALUES (?, ?)')
  inTransaction(database, () => {
    for (let index = 0; index < count; index++) {
      const { event, receivedAt } = eventOf(`key ${index}`)
      const job = new Job({ event: { ...event, ...eventAt(index) } as typeof event, receivedAt })
      const { mediaId } = job.accepted.event
      const { lastInsertRowid } = remember.run(hashKey(job.key), Date.now(), hashMedia(mediaId))
      insert.run(lastInsertRowid, writeHandled(job, ['a']))
    }
  })
  database.close()
}

/** Makes a file in which events wait, in this order. */
export async function seedWaiting(
  path: string,
  waiting: readonly { readonly key: string; readonly mediaId?: string }[],
): Promise<void> {
  await started({ path }).inbox.close()
  const database = openDatabase(path)
  const events = new SqliteEvents(database, hashKey)
  inTransaction(database, () => {
    for (const { key, mediaId } of waiting) events.accept(events.write(eventOf(key, mediaId)))
  })
  database.close()
}

/** Counts the rows that are read of events, in each turn of the event loop. */
export function countingRows(database: SqliteDatabase) {
  const perTurn = new Map<number, number>()
  let turn = 0
  let isCounting = true
  const count = () => {
    turn++
    if (isCounting) setImmediate(count)
  }
  count()
  const counting: SqliteDatabase = {
    exec: (sql) => database.exec(sql),
    prepare(sql) {
      const statement = database.prepare(sql)
      if (!sql.includes('AS source') || sql.includes('hash')) return statement
      return {
        run: (...parameters) => statement.run(...parameters),
        get: (...parameters) => statement.get(...parameters),
        all(...parameters) {
          const rows = statement.all(...parameters)
          perTurn.set(turn, (perTurn.get(turn) ?? 0) + rows.length)
          return rows
        },
      }
    },
    close: () => database.close(),
  }
  return {
    database: counting,
    /** Returns the rows of each turn since the last call. */
    take() {
      const rows = [...perTurn.values()]
      perTurn.clear()
      return rows
    },
    stop() {
      isCounting = false
    },
  }
}
