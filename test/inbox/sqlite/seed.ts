import { writeHead } from '../../../src/inbox/sql/head.ts'
import { hashMedia } from '../../../src/inbox/sqlite/dialect.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { hashKey } from '../../../src/inbox/sqlite/hash.ts'
import type { SqliteDatabase } from '../../../src/inbox/sqlite.ts'
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
  const insert = database.prepare(
    `INSERT INTO inbox_event (id, hash, media, head, received_at, attempts, completed, ended_at) VALUES (?, ?, ?, ?, ?, 1, '["a"]', ?)`,
  )
  const laneOf = lanesIn(database)
  database.exec('BEGIN')
  for (let index = 0; index < count; index++) {
    const { event, receivedAt } = eventOf(`key ${index}`)
    const handled = { ...event, ...eventAt(index) } as typeof event
    const row = [hashKey(handled.key), laneOf(handled.mediaId, index + 1), writeHead(handled), receivedAt.getTime()]
    insert.run(index + 1, ...row, Date.now())
  }
  database.exec(`UPDATE inbox_counter SET next = ${count + 1}; COMMIT`)
  database.close()
}

/** Makes lanes, numbered as the inbox does. */
function lanesIn(database: SqliteDatabase) {
  const insert = database.prepare('INSERT INTO inbox_lane (media, hash) VALUES (?, ?)')
  const lanes = new Map<string, number>()
  return (mediaId: string, firstId: number): number => {
    const lane = lanes.get(mediaId) ?? firstId
    if (lane === firstId) insert.run(lane, Number(hashMedia(mediaId)))
    lanes.set(mediaId, lane)
    return lane
  }
}

export interface Waiting {
  readonly key: string
  readonly mediaId?: string
  readonly title?: string
}

/** Makes a file in which events wait, in this order. */
export async function seedWaiting(path: string, waiting: readonly Waiting[]): Promise<void> {
  await started({ path }).inbox.close()
  const database = openDatabase(path)
  insertWaiting(database, waiting, hashKey)
  database.close()
}

/** Inserts events that wait, in this order, into the tables of an inbox that nobody has open. */
export function insertWaiting(
  database: SqliteDatabase,
  waiting: readonly Waiting[],
  hash: (key: string) => string,
): void {
  const insert = database.prepare(
    'INSERT INTO inbox_event (id, hash, media, event, head, received_at) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const wake = database.prepare('UPDATE inbox_lane SET ready_at = ? WHERE media = ? AND ready_at IS NULL')
  const laneOf = lanesIn(database)
  database.exec('SAVEPOINT seed')
  for (const [index, { key, mediaId, title }] of waiting.entries()) {
    const { event, receivedAt } = eventOf(key, mediaId)
    const titled = title === undefined ? event : { ...event, title, payload: { ...event.payload, title } }
    const media = laneOf(event.mediaId, index + 1)
    insert.run(index + 1, hash(key), media, JSON.stringify(titled), writeHead(event), receivedAt.getTime())
    wake.run(Date.now() - waiting.length + index, media)
  }
  database.exec(`UPDATE inbox_counter SET next = ${waiting.length + 1}, unfinished = ${waiting.length}; RELEASE seed`)
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
      if (!/ AS head.* FROM inbox_event event/s.test(sql) || /inbox_event event\s+WHERE hash/.test(sql))
        return statement
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
