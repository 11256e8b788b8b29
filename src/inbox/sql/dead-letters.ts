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
import { BatchReader } from './batch-reader.ts'
import { type DeadLetterRow, readDeadLetter, writeDeadLetter } from './dead-letter-row.ts'
import type { SqlTables, Step } from './tables.ts'

/** Signal: an unreadable delivery was marked for replay. */
const replayMark = 'replay'

const pageSize = 1_000

/** A dead letter with its row id and the id of its event. */
export interface PlacedRow extends DeadLetterRow {
  readonly id: number | string
  /** `null` for an unreadable delivery. */
  readonly event_id: number | string | null
}

export interface ListedKey {
  readonly key: string
  readonly type: string | undefined
  readonly diedAt: Date
}

/** Keys, oldest first. */
export interface KeysPage {
  readonly found: readonly ListedKey[]
  readonly next?: PlacedRow['id']
}

/** The database-specific part of a replay. */
export interface Replays {
  /** Returns the step that reinserts the event of a dead letter if the dead letter still exists. */
  putBack(row: PlacedRow, deadEvent: DeadEvent): Step
  readonly maxCommit: number
  /** @throws WebhookError if no event may be added */
  readonly check?: () => void
  /** Called with the row id of an event that was put back. */
  readonly replayed?: (row: PlacedRow['id']) => void
}

export interface ReplayParsing {
  readonly host: InboxHost
  /** Replaces an unreadable delivery with its event. False if it is gone; the new row id, or `true` for a duplicate. */
  replace(key: string, parsed: ParsedEvent): Promise<PlacedRow['id'] | boolean>
}

/** Keeps an unreadable delivery, unless it is already kept. Drops the oldest past the limit. */
export async function keepUnreadable(tables: SqlTables, unreadable: UnreadableDelivery, logger: Logger): Promise<void> {
  const deadLetter = unreadableDeadLetter(unreadable, await unreadableKey(unreadable))
  const sql = 'INSERT INTO $dead_letter (hash, dead_letter, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
  const values = [tables.hashKey(deadLetter.key), writeDeadLetter(deadLetter), unreadable.body]
  await tables.change([{ sql, values }])
  while (await dropOldest(tables, 'IS NULL', maxUnreadable, logger));
}

/**
 * Drops up to 100 of the oldest dead letters past `maxKept`. Returns true if more may be left.
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
  const dropped = rows.filter((_, index) => removed[index] === 1)
  for (const { key } of dropped.flatMap(undamaged))
    logger.error({ key }, 'a dead letter was dropped to make room for a newer one')
  return dropped.length > 0
}

const remove = 'DELETE FROM $dead_letter WHERE id = $1'

/** Selects dead letters. Leaves out the body, which can be large, unless given an expression for it. */
const select = (body = 'NULL'): string => `SELECT id, event_id, dead_letter, ${body} AS body FROM $dead_letter`

/** The dead letter table: events that failed for good, and unreadable deliveries. */
export class SqlDeadLetters implements InspectedDeadLetters {
  readonly #tables: SqlTables
  readonly #replays: Replays
  readonly #parsing: ReplayParsing | undefined

  /** @param parsing absent in a process without a receiver, which only marks unreadable deliveries */
  constructor(tables: SqlTables, replays: Replays, parsing?: ReplayParsing) {
    this.#tables = tables
    this.#replays = replays
    this.#parsing = parsing
  }

  async list(page?: Parameters<InspectedDeadLetters['list']>[0]): Promise<readonly DeadLetter[]> {
    const { limit, offset } = pageOf(page)
    const sql = (where: string) => `${select(this.#tables.hex('body'))} ${where} ORDER BY id DESC LIMIT $1 OFFSET $2`
    const found: DeadLetter[] = []
    const reader = new BatchReader(pageSize)
    // Offset for the first batch, then keyset by id.
    for (let last: PlacedRow | undefined; found.length < limit; ) {
      let requested = 0
      const rows = await reader.run(async (size) => {
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

  /** Lists up to 1,000 keys after an id. Skips damaged rows, which can't be replayed. */
  async keysAfter(
    place: PlacedRow['id'],
    { type, since, upTo }: KeysOptions & { readonly upTo?: PlacedRow['id'] } = {},
  ): Promise<KeysPage> {
    const found: ListedKey[] = []
    const reader = new BatchReader(pageSize)
    const sql = `${select()} WHERE id > $1 ${upTo === undefined ? '' : 'AND id <= $3'} ORDER BY id LIMIT $2`
    let next = place
    for (let left = pageSize; left > 0; ) {
      let requested = 0
      const rows = await reader.run(async (size) => {
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
    const reader = new BatchReader(this.#replays.maxCommit)
    for (let start = 0; start < keys.length; ) {
      let end = start
      const rows = await reader.run((size) => {
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

  /** Puts events back. If one died again meanwhile, its dead letter has a new id and stays. */
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

  /** Marks or unmarks unreadable deliveries for a process that can parse them. Returns the keys found. */
  async #mark(unreadable: readonly Pick<DeadLetter, 'key'>[], isMarked: boolean): Promise<readonly string[]> {
    if (unreadable.length === 0) return []
    const sql = 'UPDATE $dead_letter SET replay = $1 WHERE hash = $2'
    const values = ({ key }: Pick<DeadLetter, 'key'>) => [isMarked ? '1' : '0', this.#tables.hashKey(key)]
    const steps = unreadable.map((each) => ({ sql, values: values(each) }))
    const changed = await this.#tables.change(steps, isMarked ? replayMark : undefined)
    return unreadable.filter((_, index) => changed[index] === 1).map(({ key }) => key)
  }

  async #parse({ key, unreadable }: DeadLetter, { host, replace }: ReplayParsing): Promise<boolean> {
    const parsed = await parseAgain(host, unreadable as UnreadableDelivery)
    this.#replays.check?.()
    const replaced = await replace(key, parsed)
    if (typeof replaced !== 'boolean') this.#replays.replayed?.(replaced)
    return replaced !== false
  }

  /** Replays unreadable deliveries marked by another program. Those that still can't be parsed stay, unmarked. */
  async replayMarked(): Promise<void> {
    const rows = await this.#tables.read<PlacedRow>(`${select()} WHERE replay ORDER BY id`)
    for (const deadLetter of rows.flatMap(undamaged)) {
      const { key } = deadLetter
      try {
        // One at a time: each reads its body.
        await this.replay(key)
      } catch (error) {
        const code = error instanceof WebhookError ? error.code : undefined
        if (code === 'closing' || code === 'overloaded') return
        if (code === 'unavailable') throw error
        this.#parsing?.host.logger.error({ key, err: error }, 'an unreadable delivery still cannot be parsed')
        await this.#mark([deadLetter], false)
      }
    }
  }
}

const placeholders = (values: readonly unknown[]): string => values.map((_, index) => `$${index + 1}`).join()

/** Reads a dead letter. Empty if the row is damaged. */
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

function ifMalformed(error: unknown): false {
  if (error instanceof WebhookError && error.code === 'malformed') return false
  throw error
}
