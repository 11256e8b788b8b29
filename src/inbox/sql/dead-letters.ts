import { nextTurn } from '../../internal/timers.ts'
import { checkPage } from '../operations/page.ts'
import type { DeadLetter, InspectedDeadLetters, KeysOptions, ReplayAllOptions, ReplayReport } from '../reading.ts'
import { BatchReader } from './batch-reader.ts'
import type { Database, Value } from './database.ts'
import {
  type DeadHeadRow,
  type DeadLetterRow,
  deadHeadColumns,
  deadLetterColumns,
  type ListedKey,
  readDeadHead,
  readDeadLetter,
  undamaged,
} from './dead-letter-row.ts'
import { discard } from './discards.ts'
import { type Replaying, SqlReplays } from './replays.ts'

/** Rows per statement, and changes per commit, if the database has no lower limit. */
const maxRows = 1_000
const maxCommit = 500

/** Keys, oldest first. */
export interface KeysPage {
  readonly found: readonly ListedKey[]
  /** Where the next page starts. Absent at the end. */
  readonly next?: string
}

/** The dead letters: events that failed for good, and unreadable deliveries. */
export class SqlDeadLetters implements InspectedDeadLetters {
  readonly #database: Database
  readonly #replays: SqlReplays
  readonly #rowsPerTurn: number
  readonly #maxCommit: number

  constructor(database: Database, replaying?: Replaying) {
    this.#database = database
    const { rowsPerTurn = maxRows } = database.dialect
    this.#rowsPerTurn = rowsPerTurn
    this.#maxCommit = Math.min(maxCommit, rowsPerTurn)
    const get = (key: string) => this.get(key)
    this.#replays = new SqlReplays({ database, replaying, get, maxCommit: this.#maxCommit })
  }

  async list(page?: Parameters<InspectedDeadLetters['list']>[0]): Promise<readonly DeadLetter[]> {
    const { limit, offset } = checkPage(page)
    const found: DeadLetter[] = []
    const reader = new BatchReader(this.#database, this.#rowsPerTurn)
    let last: DeadLetterRow | undefined
    for (let left = limit; left > 0; ) {
      let asked = 0
      const rows = await reader.run((size) => {
        asked = Math.min(size, left)
        return this.#rows(asked, offset, last)
      })
      found.push(...undamaged(rows, readDeadLetter))
      if (rows.length < asked) break
      left -= rows.length
      last = rows.at(-1)
      await nextTurn()
    }
    return found
  }

  /** Reads the rows behind `last`, or behind the first `offset` rows. */
  async #rows(size: number, offset: number, last: DeadLetterRow | undefined): Promise<DeadLetterRow[]> {
    const [where, end, values] =
      last === undefined
        ? ['', 'OFFSET $2', [offset]]
        : ['AND (event.died_at, id) < ($2, $3)', '', [JSON.parse(last.place), Number(last.id)]]
    const sql = `SELECT ${deadLetterColumns(this.#database.dialect)} FROM $event event
      WHERE died_at IS NOT NULL ${where} ORDER BY event.died_at DESC, id DESC LIMIT $1 ${end}`
    return this.#database.read<DeadLetterRow>(sql, [size, ...values])
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    const columns = deadLetterColumns(this.#database.dialect)
    const sql = `SELECT ${columns} FROM $event event WHERE hash = $1 AND died_at IS NOT NULL`
    const [row] = await this.#database.read<DeadLetterRow>(sql, [this.#database.hashKey(key)])
    return row && readDeadLetter(row)
  }

  async keys(options: KeysOptions = {}): Promise<readonly string[]> {
    // What dies meanwhile is left out, or a replay of all would not end.
    const newest = `SELECT ${this.#database.dialect.json('max(died_at)')} AS place FROM $event WHERE died_at IS NOT NULL`
    const [row] = await this.#database.read<{ place: string | null }>(newest)
    if (row?.place == null) return []
    const upTo = JSON.parse(row.place)
    const keys: string[] = []
    for (let place: string | undefined = ''; place !== undefined; ) {
      const page: KeysPage = await this.keysAfter(place, { ...options, upTo })
      for (const { key } of page.found) keys.push(key)
      place = page.next
    }
    return keys
  }

  /**
   * Lists up to 1,000 keys. Skips damaged rows.
   * @param place `''`, or `next` of the previous page
   */
  async keysAfter(
    place: string,
    { type, since, upTo }: KeysOptions & { readonly upTo?: string | number } = {},
  ): Promise<KeysPage> {
    const found: ListedKey[] = []
    let next = place
    for (let left = maxRows; left > 0; ) {
      const asked = Math.min(left, this.#rowsPerTurn)
      const rows = await this.#heads(asked, next, upTo)
      for (const each of undamaged(rows, readDeadHead))
        if ((type ?? each.type) === each.type && (since === undefined || each.diedAt >= since)) found.push(each)
      const last = rows.at(-1)
      if (last === undefined || rows.length < asked) return { found }
      next = JSON.stringify([JSON.parse(last.place), Number(last.id)])
      left -= rows.length
      await nextTurn()
    }
    return { found, next }
  }

  async #heads(size: number, place: string, upTo: string | number | undefined): Promise<DeadHeadRow[]> {
    const values: Value[] = [size]
    const add = (value: Value) => `$${values.push(value)}`
    const after = place === '' ? undefined : (JSON.parse(place) as [diedAt: string | number, id: number])
    const where = [
      'died_at IS NOT NULL',
      ...(after === undefined ? [] : [`(event.died_at, id) > (${add(after[0])}, ${add(after[1])})`]),
      ...(upTo === undefined ? [] : [`event.died_at <= ${add(upTo)}`]),
    ]
    const sql = `SELECT ${deadHeadColumns(this.#database.dialect)} FROM $event event
      WHERE ${where.join(' AND ')} ORDER BY event.died_at, id LIMIT $1`
    return this.#database.read<DeadHeadRow>(sql, values)
  }

  async discard(key: string): Promise<boolean> {
    return (await this.discardMany([key])).length > 0
  }

  async discardMany(keys: readonly string[]): Promise<readonly string[]> {
    const discarded: string[] = []
    for (let start = 0; start < keys.length; start += this.#maxCommit)
      discarded.push(...(await discard(this.#database, keys.slice(start, start + this.#maxCommit))))
    return discarded
  }

  replay(key: string): Promise<boolean> {
    return this.#replays.replay(key)
  }

  replayMany(keys: readonly string[]): Promise<readonly string[]> {
    return this.#replays.replayMany(keys)
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    return this.#replays.replayAll(options, () => this.keys(options))
  }

  /** Replays unreadable deliveries that another program has marked. */
  replayMarked(): Promise<void> {
    return this.#replays.replayMarked()
  }
}
