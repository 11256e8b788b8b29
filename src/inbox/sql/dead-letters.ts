import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import { nextTurn } from '../../internal/timers.ts'
import { maxUnreadable, unreadableDeadLetter, unreadableKey } from '../engine/stored.ts'
import type { InboxHost } from '../inbox.ts'
import { type ParsedEvent, parseAgain } from '../operations/dead-letters.ts'
import { pageOf } from '../operations/page.ts'
import { replayAll, replayInSteps } from '../operations/replay-all.ts'
import type {
  DeadEvent,
  DeadLetter,
  InspectedDeadLetters,
  KeysOptions,
  ReplayAllOptions,
  ReplayReport,
  UnreadableDelivery,
} from '../reading.ts'
import { type DeadLetterRow, readDeadLetter, writeDeadLetter } from './dead-letter-row.ts'
import { Piece } from './piece.ts'
import type { SqlTables, Step } from './tables.ts'

/** The signal that an unreadable delivery was marked for a replay. */
const replayMark = 'replay'

/** Maximum number of dead letters that are read at a time. */
const pageSize = 1_000

/** A dead letter, its place among the others, and the id of its event. */
export interface PlacedRow extends DeadLetterRow {
  readonly id: number | string
  /** `null` for an unreadable delivery. */
  readonly event_id: number | string | null
}

/** A dead letter as a list of keys has it. */
export interface ListedKey {
  readonly key: string
  readonly type: string | undefined
  readonly diedAt: Date
}

/** Some keys, oldest first. */
export interface KeysPage {
  readonly found: readonly ListedKey[]
  /** The place after which to continue. Absent if there are no more. */
  readonly next?: PlacedRow['id']
}

/** What a replay does to the events, whose tables each database has its own steps for. */
export interface Replays {
  /** Makes the step that inserts the event of a dead letter, if the dead letter is still there. */
  putBack(row: PlacedRow, deadEvent: DeadEvent): Step
  /** Maximum number of dead letters that a commit changes. */
  readonly maxCommit: number
  /** @throws WebhookError when no event may be added */
  readonly check?: () => void
  /** Called with the row of an event that waits again. */
  readonly replayed?: (row: PlacedRow['id']) => void
}

/** How a process replays unreadable deliveries. */
export interface Parsing {
  readonly host: InboxHost
  /**
   * Replaces an unreadable delivery by its event, unless that is known. Returns `false` if the delivery is gone, otherwise the row
   * of a new event or `true`.
   */
  replace(key: string, parsed: ParsedEvent): Promise<PlacedRow['id'] | boolean>
}

/**
 * Keeps an unreadable delivery, unless it is there, and drops the oldest ones beyond the limit.
 */
export async function keepUnreadable(tables: SqlTables, unreadable: UnreadableDelivery, logger: Logger): Promise<void> {
  const deadLetter = unreadableDeadLetter(unreadable, await unreadableKey(unreadable))
  const sql = 'INSERT INTO $dead_letter (hash, dead_letter, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
  const values = [tables.hashKey(deadLetter.key), writeDeadLetter(deadLetter), unreadable.body]
  await tables.change([{ sql, values }])
  while (await dropOldest(tables, 'IS NULL', maxUnreadable, logger));
}

/**
 * Drops up to 100 of the oldest dead letters of a kind, if there are more than `most`. Returns `true` if there may be more.
 * @param kind `IS NULL` for unreadable deliveries, which have no event
 */
export async function dropOldest(
  tables: SqlTables,
  kind: 'IS NULL' | 'IS NOT NULL',
  maxKept: number,
  logger: Logger,
): Promise<boolean> {
  const sql = `${select()} WHERE event_id ${kind} ORDER BY id DESC LIMIT 100 OFFSET $1`
  const rows = await tables.read<PlacedRow>(sql, [maxKept])
  if (rows.length === 0) return false
  const removed = await tables.change(rows.map(({ id }) => ({ sql: remove, values: [id] })))
  // Another delivery may have dropped them.
  const dropped = rows.filter((_, index) => removed[index] === 1)
  for (const { key } of dropped.flatMap(undamaged))
    logger.error({ key }, 'a dead letter was dropped to make room for a newer one')
  return dropped.length > 0
}

const remove = 'DELETE FROM $dead_letter WHERE id = $1'

/** Selects dead letters. `body`: an expression for their bodies, which can be large. */
const select = (body = 'NULL'): string => `SELECT id, event_id, dead_letter, ${body} AS body FROM $dead_letter`

/** The table of the dead letters: events that could not be handled, and unreadable deliveries. */
export class SqlDeadLetters implements InspectedDeadLetters {
  readonly #tables: SqlTables
  readonly #replays: Replays
  readonly #parsing: Parsing | undefined

  /** @param parsing absent in a process without a receiver: it marks unreadable deliveries for one that has one */
  constructor(tables: SqlTables, replays: Replays, parsing?: Parsing) {
    this.#tables = tables
    this.#replays = replays
    this.#parsing = parsing
  }

  async list(page?: Parameters<InspectedDeadLetters['list']>[0]): Promise<readonly DeadLetter[]> {
    const { limit, offset } = pageOf(page)
    const sql = (where: string) => `${select(this.#tables.hex('body'))} ${where} ORDER BY id DESC LIMIT $1 OFFSET $2`
    const found: DeadLetter[] = []
    const piece = new Piece(pageSize)
    // The first piece goes by the offset, the others by id.
    for (let last: PlacedRow | undefined; found.length < limit; ) {
      let requested = 0
      const rows = await piece.run(async (size) => {
        requested = Math.min(size, limit - found.length)
        if (last === undefined) return this.#tables.read<PlacedRow>(sql(''), [requested, offset])
        return this.#tables.read<PlacedRow>(sql('WHERE id < $3'), [requested, 0, last.id])
      })
      for (const row of rows) found.push(readDeadLetter(row))
      if (rows.length < requested) break
      last = rows.at(-1)
      await nextTurn()
    }
    return found
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    const [row] = await this.#rows([key])
    return row && readDeadLetter(row)
  }

  async #rows(keys: readonly string[]): Promise<PlacedRow[]> {
    const sql = `${select(this.#tables.hex('body'))} WHERE hash IN (${placeholders(keys)}) ORDER BY id`
    return this.#tables.read<PlacedRow>(
      sql,
      keys.map((key) => this.#tables.hashKey(key)),
    )
  }

  async keys(options?: KeysOptions): Promise<readonly string[]> {
    const [newest] = await this.#tables.read<{ id: PlacedRow['id'] | null }>('SELECT max(id) AS id FROM $dead_letter')
    const keys: string[] = []
    for (let after: PlacedRow['id'] | undefined = 0; after !== undefined; ) {
      const page: KeysPage = await this.keysAfter(after, { ...options, upTo: newest?.id ?? 0 })
      for (const { key } of page.found) keys.push(key)
      after = page.next
    }
    return keys
  }

  /** Lists up to 1,000 keys behind a place, without those that are damaged: they cannot be replayed. */
  async keysAfter(
    place: PlacedRow['id'],
    { type, since, upTo }: KeysOptions & { readonly upTo?: PlacedRow['id'] } = {},
  ): Promise<KeysPage> {
    const found: ListedKey[] = []
    const piece = new Piece(pageSize)
    const sql = `${select()} WHERE id > $1 ${upTo === undefined ? '' : 'AND id <= $3'} ORDER BY id LIMIT $2`
    let next = place
    for (let left = pageSize; left > 0; ) {
      let requested = 0
      const rows = await piece.run(async (size) => {
        requested = Math.min(size, left)
        return this.#tables.read<PlacedRow>(sql, upTo === undefined ? [next, requested] : [next, requested, upTo])
      })
      for (const { key, event, diedAt } of rows.flatMap(undamaged))
        if ((type ?? event?.type) === event?.type && (since === undefined || diedAt >= since))
          found.push({ key, type: event?.type, diedAt })
      if (rows.length < requested) return { found }
      next = rows.at(-1)?.id ?? next
      left -= rows.length
      await nextTurn()
    }
    return { found, next }
  }

  async discard(key: string): Promise<boolean> {
    return (await this.discardMany([key])).length > 0
  }

  async discardMany(keys: readonly string[]): Promise<readonly string[]> {
    const { maxCommit } = this.#replays
    const discarded: string[] = []
    for (let start = 0; start < keys.length; start += maxCommit) {
      const batch = keys.slice(start, start + maxCommit)
      const sql = 'DELETE FROM $dead_letter WHERE hash = $1'
      const removed = await this.#tables.change(batch.map((key) => ({ sql, values: [this.#tables.hashKey(key)] })))
      discarded.push(...batch.filter((_, index) => removed[index] === 1))
    }
    return discarded
  }

  async replay(key: string): Promise<boolean> {
    return (await this.#replay([key], rethrow)).length > 0
  }

  replayMany(keys: readonly string[]): Promise<readonly string[]> {
    return this.#replay(keys, ifMalformed)
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    const { maxCommit } = this.#replays
    const keys = () => this.keys(options)
    if (maxCommit === 1) return replayAll(this, options, keys)
    return replayInSteps({ maxStep: maxCommit, keys, replay: (batch) => this.replayMany(batch) }, options)
  }

  async #replay(keys: readonly string[], onFailure: (error: unknown) => false): Promise<readonly string[]> {
    const replayed: string[] = []
    const piece = new Piece(this.#replays.maxCommit)
    for (let start = 0; start < keys.length; ) {
      let end = start
      const rows = await piece.run((size) => {
        end = Math.min(start + size, keys.length)
        return this.#rows(keys.slice(start, end))
      })
      replayed.push(...(await this.#replayRows(rows, onFailure)))
      start = end
    }
    return replayed
  }

  async #replayRows(rows: readonly PlacedRow[], onFailure: (error: unknown) => false): Promise<readonly string[]> {
    this.#replays.check?.()
    const replayed = await this.#putBack(rows.filter(({ event_id: event }) => event !== null))
    const unreadable = rows.filter(({ event_id: event }) => event === null).map(readDeadLetter)
    const parsing = this.#parsing
    if (parsing === undefined) return [...replayed, ...(await this.#mark(unreadable, true))]
    for (const deadLetter of unreadable)
      if (await this.#parse(deadLetter, parsing).catch(onFailure)) replayed.push(deadLetter.key)
    return replayed
  }

  /** Puts events back among the waiting ones. One that became a dead letter again meanwhile has another id, and stays. */
  async #putBack(rows: readonly PlacedRow[]): Promise<string[]> {
    if (rows.length === 0) return []
    const events = rows.map((row) => readDeadLetter(row) as DeadEvent)
    const inserts = rows.map((row, index) => this.#replays.putBack(row, events[index] as DeadEvent))
    const sql = `DELETE FROM $dead_letter WHERE id IN (${placeholders(rows)})`
    const changed = await this.#tables.change([...inserts, { sql, values: rows.map(({ id }) => id) }], 'due')
    return rows.flatMap((row, index) => {
      if (changed[index] !== 1) return []
      this.#replays.replayed?.(row.event_id as PlacedRow['id'])
      return [(events[index] as DeadEvent).key]
    })
  }

  /** Marks unreadable deliveries for a process that can parse them. Returns the keys of those that are there. */
  async #mark(unreadable: readonly Pick<DeadLetter, 'key'>[], isMarked: boolean): Promise<readonly string[]> {
    if (unreadable.length === 0) return []
    const sql = 'UPDATE $dead_letter SET replay = $1 WHERE hash = $2'
    const values = ({ key }: Pick<DeadLetter, 'key'>) => [isMarked ? '1' : '0', this.#tables.hashKey(key)]
    const steps = unreadable.map((each) => ({ sql, values: values(each) }))
    const changed = await this.#tables.change(steps, isMarked ? replayMark : undefined)
    return unreadable.filter((_, index) => changed[index] === 1).map(({ key }) => key)
  }

  /** Parses an unreadable delivery again, and replaces it by its event. */
  async #parse({ key, unreadable }: DeadLetter, { host, replace }: Parsing): Promise<boolean> {
    const parsed = await parseAgain(host, unreadable as UnreadableDelivery)
    this.#replays.check?.()
    const replaced = await replace(key, parsed)
    if (typeof replaced !== 'boolean') this.#replays.replayed?.(replaced)
    return replaced !== false
  }

  /** Replays the unreadable deliveries that another program has marked. One that still cannot be parsed stays, unmarked. */
  async replayMarked(): Promise<void> {
    const rows = await this.#tables.read<PlacedRow>(`${select()} WHERE replay ORDER BY id`)
    for (const deadLetter of rows.flatMap(undamaged)) {
      const { key } = deadLetter
      try {
        // It reads one body at a time.
        await this.replay(key)
      } catch (error) {
        const code = error instanceof WebhookError ? error.code : undefined
        // It stays marked.
        if (code === 'closing' || code === 'overloaded') return
        if (code === 'unavailable') throw error
        this.#parsing?.host.logger.error({ key, err: error }, 'an unreadable delivery still cannot be parsed')
        await this.#mark([deadLetter], false)
      }
    }
  }
}

/** The places of as many values, from the first one on. */
const placeholders = (values: readonly unknown[]): string => values.map((_, index) => `$${index + 1}`).join()

/** Returns the dead letter of a row, or nothing if the row is damaged. */
function undamaged(row: DeadLetterRow): readonly DeadLetter[] {
  try {
    return [readDeadLetter(row)]
  } catch {
    return []
  }
}

function rethrow(error: unknown): never {
  throw error
}

/** Answers that a delivery was not replayed, because it still cannot be parsed. */
function ifMalformed(error: unknown): false {
  if (error instanceof WebhookError && error.code === 'malformed') return false
  throw error
}
