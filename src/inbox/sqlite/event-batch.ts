import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import { SqliteEvents, type WrittenEvent } from '../sqlite-tables/events.ts'
import { insertOf } from '../sqlite-tables/statements.ts'

/** Rows per insert. A prepared statement has a fixed number. */
const sizes = [64, 8, 1]

/** Prepares an insert of any number of rows. Calls `wrote` after each statement. */
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

/** Event tables with batched inserts: 64 rows in one statement save 3.3 µs of 21 µs CPU per event. */
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

  begin(): void {
    this.#accepting = []
    this.#ended = []
  }

  /** Stores an event at the end of the transaction. */
  acceptLater(written: WrittenEvent): void {
    written.id = undefined
    this.#accepting.push(written)
  }

  /** Records a handled event at the end of the transaction, after its handlers' own writes. */
  override handled(row: number, record: string): void {
    this.#ended.push([row, record])
  }

  /** Does the batched writes. Call it last in the transaction. */
  flush(): void {
    // First, to free pages for the accepted events.
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
        // New rows come last, in the order of the events.
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

  /** Sets the ids of the new events of a batch with duplicates, whose ids are `before` or lower. */
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
