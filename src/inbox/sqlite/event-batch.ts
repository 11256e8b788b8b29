import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import { SqliteEvents, type WrittenEvent } from '../sqlite-tables/events.ts'
import { insertOf } from '../sqlite-tables/statements.ts'

/** The numbers of rows that a statement writes at once. A prepared statement has as many as it was prepared for. */
const sizes = [64, 8, 1]

/** Prepares a statement that writes all rows, some at a time. `wrote` is called with each part. */
function rowsStatement(database: SqliteDatabase, what: Parameters<typeof insertOf>[0]) {
  const statements = sizes.map((size) => ({ size, statement: database.prepare(insertOf(what, size)) }))
  return <Row>(
    rows: readonly Row[],
    parameters: (row: Row) => readonly unknown[],
    wrote: (rows: readonly Row[], result: ReturnType<SqliteStatement['run']>) => void = () => {},
  ): void => {
    let start = 0
    for (const { size, statement } of statements) {
      for (; rows.length - start >= size; start += size) {
        const part = rows.slice(start, start + size)
        wrote(part, statement.run(...part.flatMap(parameters)))
      }
    }
  }
}

/**
 * The tables of the events, and what a commit writes to them for many events at once: 64 rows in one statement take
 * 3.3 µs of CPU less for an event than a statement for each, of 21 µs.
 */
export class SqliteEventBatch extends SqliteEvents {
  readonly #remember: ReturnType<typeof rowsStatement>
  readonly #insert: ReturnType<typeof rowsStatement>
  readonly #addHandled: ReturnType<typeof rowsStatement>
  #accepting: WrittenEvent[] = []
  #ended: (readonly [row: number, record: string])[] = []

  constructor(...[database, ...hashes]: ConstructorParameters<typeof SqliteEvents>) {
    super(database, ...hashes)
    this.#remember = rowsStatement(database, 'key')
    this.#insert = rowsStatement(database, 'event')
    this.#addHandled = rowsStatement(database, 'handled')
  }

  /** Forgets what a transaction was to write that has been undone. */
  begin(): void {
    this.#accepting = []
    this.#ended = []
  }

  /** Stores an event at the end of the transaction. */
  acceptLater(written: WrittenEvent): void {
    written.id = undefined
    this.#accepting.push(written)
  }

  /** Records at the end of the transaction that an event has been handled, after what its handlers write in it. */
  override handled(row: number, record: string): void {
    this.#ended.push([row, record])
  }

  /** Writes what the transaction has to write. The last part of it. */
  flush(): void {
    // First, so that the accepted events take the pages that these free: 2 % of CPU.
    if (this.#ended.length > 0) this.#addHandled(this.#ended, (ended) => ended)
    if (this.#accepting.length > 0) this.#acceptAll()
  }

  #acceptAll(): void {
    const now = Date.now()
    const accepted: WrittenEvent[] = []
    this.#remember(
      this.#accepting,
      ({ keyHash, media }) => [keyHash, now, media],
      (events, { changes, lastInsertRowid }) => {
        // The new rows are the last ones, in the order of the events.
        const before = Number(lastInsertRowid) - Number(changes)
        if (Number(changes) === events.length)
          for (const [index, event] of events.entries()) event.id = before + index + 1
        else if (Number(changes) > 0) this.#findNew(events, before)
        for (const event of events) if (event.id !== undefined) accepted.push(event)
      },
    )
    this.#insert(accepted, ({ id, event, receivedAt, trace }) => [id, event, receivedAt, trace])
    for (const { changes } of accepted) if (changes !== undefined) this.expectations.apply(changes)
  }

  /** Finds the rows of events of which some were seen before: theirs are not behind the rows that there were before. */
  #findNew(events: readonly WrittenEvent[], before: number): void {
    const taken = new Set<number>()
    for (const event of events) {
      const id = this.idOfHash(event.keyHash) as number
      if (id <= before || taken.has(id)) continue
      taken.add(id)
      event.id = id
    }
  }
}
