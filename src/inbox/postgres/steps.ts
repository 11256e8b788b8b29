import { randomUUID } from 'node:crypto'
import { processName } from '../../internal/process-name.ts'
import { handlersJson, type PublishedHandlers } from '../engine/owed-handlers.ts'
import type { Acceptance, HandlerName } from '../inbox.ts'
import type {
  Claim,
  ClaimedLane,
  ClaimRequest,
  HeldEvent,
  Media,
  NewEvent,
  NewUnreadable,
  OverdueExpectation,
  RecordedLane,
  Renewed,
  RunningEvents,
  SettledEvent,
  SettledLane,
  SharedStatements,
  Statements,
} from '../sql/database.ts'
import { Expiration } from './expiration.ts'
import { acceptColumns, type ClaimedRow, changeColumns, laneColumns, readLanes, settledColumns } from './rows.ts'
import * as sql from './statements.ts'
import {
  begin,
  commit,
  type Message,
  namedQuery,
  type PostgresStep,
  type Query,
  query,
  type Rows,
  transaction,
} from './step.ts'

/** Events of a lane that a claim reads, and their bytes over all lanes. A timeout on more is likely. */
const maxEvents = 64
const maxBytes = 1_000_000

/** Dead entries of this time are read again with each claim: accepts may commit late (ms). */
const lookBackMs = 1_000

/** Statement timeout of a takeover, and of closing (ms). */
const slowStepMs = 30_000

export interface StepsOptions {
  readonly isStrict: boolean
  readonly leaseMs: number
  readonly ttlMs: number
}

/** The steps of the Postgres inbox: the messages around the statements, and what their answers mean. */
export class PostgresSteps implements Statements, SharedStatements {
  readonly shared = this
  /** Processes that have joined, as of the last renewal. */
  processes = 1
  readonly #isStrict: boolean
  readonly #leaseMs: number
  readonly #expiration: Expiration
  /** Where claims begin to read, and when they last read from the start. */
  #from = '-infinity'
  #startedOverAt = 0

  constructor({ isStrict, leaseMs, ttlMs }: StepsOptions) {
    this.#isStrict = isStrict
    this.#leaseMs = leaseMs
    this.#expiration = new Expiration(ttlMs)
  }

  accept(events: readonly NewEvent[]): PostgresStep<readonly Acceptance[]> {
    const { parts, at } = this.#accepting(events, events)
    return { on: 'accepting', parts, read: (results) => acceptances(events, results[at] as Rows) }
  }

  /** Message of an accept. Its result is at index `at`. */
  #accepting(
    events: readonly Omit<NewEvent, 'changes'>[],
    changing: readonly NewEvent[],
    { gone = '', unreadable = '', since = 'NULL' } = {},
  ): { readonly parts: Message['parts']; readonly at: number } {
    const given = acceptColumns(events)
    const changes = changeColumns(changing)
    if (changes === undefined) {
      const text = sql.accept(this.#isStrict, gone, '', since)
      if (gone === '') return { parts: [namedQuery('accept', text, ...given)], at: 0 }
      return { parts: transaction(query(text, ...given, unreadable)), at: 1 }
    }
    const parts = sql.endExpectations + sql.beginExpectations
    const accept = query(sql.accept(this.#isStrict, gone, parts, since), ...given, unreadable, ...changes.values)
    return { parts: transaction(accept, sql.useIndexes, query(sql.removeEnded, changes.subjects)), at: 1 }
  }

  overdue(limit: number) {
    const step: PostgresStep<{ overdue: readonly OverdueExpectation[]; nextInMs: number }> = {
      on: 'patient',
      parts: transaction(sql.useIndexes, query(sql.overdue, limit), sql.nextDeadline),
      read: (results) => {
        const [overdue, next] = results.slice(-3) as [Rows, Rows]
        return {
          overdue: overdue.map((row) => ({ hash: `${row['hash']}`, media: `${row['media']}`, place: row })),
          nextInMs: Number(next[0]?.['wait'] ?? Number.POSITIVE_INFINITY),
        }
      },
    }
    return step
  }

  fire(overdue: readonly OverdueExpectation[]): PostgresStep<number> {
    const events = overdue.map(({ hash, media, place }) => {
      const row = place as Record<string, string | null>
      return {
        hash,
        media,
        event: `${row['event']}`,
        head: `${row['head']}`,
        trace: row['trace'] ?? undefined,
        receivedAt: Number(row['due']),
        owed: `${row['owed']}`,
      }
    })
    const { parts, at } = this.#accepting(events, [], { gone: sql.firing })
    return { on: 'patient', parts, read: (results) => (results[at] as Rows).length }
  }

  claim({ owner, lanes, marked, waits }: ClaimRequest) {
    const from = this.#claimFrom()
    const claim = namedQuery('claim', sql.claim, owner, lanes, marked, from)
    const wait = query(sql.awaitLane, owner, from)
    // A claim that a crash of the server takes back is found by the settle that follows it: it needs no wait for the disk.
    const start = `${begin}; SET LOCAL synchronous_commit = off`
    const before = waits ? [start, "SET LOCAL lock_timeout = '1s'", wait] : [start]
    const next = namedQuery('next', sql.nextReady, from)
    const step: PostgresStep<Claim> = {
      on: waits ? 'patient' : 'handling',
      parts: [...before, claim, commit, this.#read(lanes + marked), next, forget],
      read: (results) => {
        const [claimed, , read, ready] = results.slice(-5) as unknown as [Rows, Rows, Rows, Rows]
        const { count, first } = claimed[0] as { count: number; first: string | null }
        if (first !== null) this.#from = first
        const { wait: waitMs, held_up: isHeldUp } = ready[0] as { wait: string | null; held_up: boolean }
        return {
          lanes: readLanes(read as unknown as readonly ClaimedRow[], maxEvents),
          nextInMs: Number(waitMs ?? Number.POSITIVE_INFINITY),
          isHeldUp: isHeldUp && count < lanes,
        }
      },
    }
    return step
  }

  #claimFrom(): string {
    const now = performance.now()
    if (now - this.#startedOverAt > lookBackMs) {
      this.#startedOverAt = now
      return '-infinity'
    }
    return this.#from
  }

  #read(lanes: number): Query {
    const text = sql.readClaimed(this.#isStrict)
    return namedQuery('read', text, maxEvents + 1, Math.ceil(maxBytes / Math.max(lanes, 1)))
  }

  adopt(owner: string, known: readonly Media[]) {
    return this.#claiming(query(sql.adopt, owner, known), 64)
  }

  claimAwaited(owner: string, names: readonly string[], lanes: number) {
    return this.#claiming(query(sql.claimAwaited, owner, names, lanes), lanes)
  }

  #claiming(claim: Query, lanes: number): PostgresStep<readonly ClaimedLane[]> {
    const read = (results: readonly Rows[]) => readLanes(results.at(-2) as unknown as readonly ClaimedRow[], maxEvents)
    return { on: 'patient', parts: [...transaction(claim), this.#read(lanes), forget], read }
  }

  settle(
    owner: string,
    lanes: readonly SettledLane[],
    events: readonly SettledEvent[],
  ): PostgresStep<readonly RecordedLane[]> {
    const columns = laneColumns(lanes)
    const lock = namedQuery('lock_held', sql.lockHeld, owner, ...columns.slice(0, 3))
    const values = [owner, ...columns, ...settledColumns(events)]
    const settle = namedQuery('settle', sql.settle(this.#isStrict), ...values)
    const awaiting = lanes.filter(({ awaits }) => awaits).map(({ media }) => media)
    const gather = query(sql.gatherAwaits, awaiting)
    return {
      on: 'handling',
      parts: transaction(lock, settle, ...(awaiting.length > 0 ? [gather] : [])),
      read: (results) =>
        (results[2] as Rows).map(({ media, wait }) => ({
          media: `${media}`,
          readyInMs: wait === null ? Number.POSITIVE_INFINITY : Math.max(0, Number(wait)),
        })),
    }
  }

  count({ owner, media, turn, id }: HeldEvent, from: number, to: number): PostgresStep<boolean> {
    const count = namedQuery('count', sql.count, id, from, to, media, owner, turn)
    return { on: 'handling', parts: [count], read: ([rows]) => (rows as Rows).length > 0 }
  }

  join(owner: string, handlers: readonly HandlerName[]): PostgresStep<void> {
    const join = query(sql.join, owner, this.#leaseMs, handlersJson(handlers), processName)
    const have = query(sql.haveHandlers, namesOf(handlers))
    return { on: 'renewing', parts: transaction(join, have), read: () => {} }
  }

  leave(owner: string, handlers: readonly HandlerName[]): PostgresStep<void> {
    const leave = sql.leave.map((text) => query(text, owner))
    const remove = query(sql.removeHandlers, owner, namesOf(handlers))
    return { on: 'renewing', parts: transaction(...leave, remove), timeoutMs: slowStepMs, read: () => {} }
  }

  renew(owner: string, running: RunningEvents) {
    const json = running === undefined ? '' : JSON.stringify(running)
    const renew = namedQuery('renew', sql.renew, owner, this.#leaseMs, json)
    const step: PostgresStep<Renewed> = {
      on: 'renewing',
      parts: transaction(renew, sql.expired),
      read: (results) => {
        const [row] = results[2] as unknown as [
          Record<'expired' | 'late' | 'ready' | 'awaited', boolean> & { processes: number },
        ]
        this.processes = row.processes
        const isLost = (results[1] as Rows).length === 0
        return { isLost, hasExpired: row.expired || row.late, hasReady: row.ready, hasAwaited: row.awaited }
      },
    }
    return step
  }

  takeOver(): PostgresStep<boolean> {
    return {
      on: 'patient',
      parts: transaction(sql.useIndexes, ...sql.takeOver),
      timeoutMs: slowStepMs,
      read: (results) => results.at(-2)?.[0]?.['more'] === true,
    }
  }

  publish(owner: string, handlers: readonly HandlerName[], former: readonly HandlerName[]): PostgresStep<void> {
    const names = namesOf(handlers)
    const gone = namesOf(former).filter((name) => !names.includes(name))
    const parts = transaction(
      query(sql.publish, owner, handlersJson(handlers)),
      query(sql.haveHandlers, names),
      query(sql.removeHandlers, owner, gone),
    )
    return { on: 'renewing', parts, read: () => {} }
  }

  handlers() {
    const step: PostgresStep<PublishedHandlers> = {
      on: 'handling',
      parts: [sql.handlers],
      read: ([rows]) => ({
        live: (rows as Rows).flatMap(({ handlers }) => (handlers === null ? [] : [JSON.parse(`${handlers}`)])),
        removed: (rows as Rows).flatMap(({ removed }) => (removed === null ? [] : [JSON.parse(`${removed}`)])),
      }),
    }
    return step
  }

  replay(dead: readonly { readonly id: number; readonly media: Media }[]): PostgresStep<readonly number[]> {
    const lock = query(
      sql.lockLanes,
      dead.map(({ media }) => media),
    )
    const replay = query(
      sql.replay(this.#isStrict),
      dead.map(({ id }) => id),
    )
    return {
      on: 'reading',
      parts: transaction(lock, replay),
      read: (results) => (results[2] as Rows).map(({ former }) => Number(former)),
    }
  }

  keep({ hash, head, body }: NewUnreadable): PostgresStep<void> {
    return {
      on: 'reading',
      parts: [query(sql.keep, hash, head, body)],
      read: () => {},
    }
  }

  replace(unreadable: string, event: NewEvent): PostgresStep<Acceptance | 'gone'> {
    const isGone = 'SELECT FROM $event WHERE hash = $1::uuid AND body IS NOT NULL'
    const replacing = { gone: sql.replacing, unreadable, since: 'now()' }
    const { parts, at } = this.#accepting([event], [event], replacing)
    return {
      on: 'reading',
      parts: [query(isGone, unreadable), ...parts],
      read: (results) =>
        results[0]?.length === 0 ? 'gone' : (acceptances([event], results[at + 1] as Rows)[0] as Acceptance),
    }
  }

  retry(hash: string): PostgresStep<boolean> {
    const parts = sql.retry.map((text) => query(text, hash))
    return { on: 'reading', parts: transaction(...parts), read: (results) => (results[2] as Rows).length > 0 }
  }

  expire() {
    return this.#expiration.next(randomUUID())
  }
}

/** Behind a transaction pooler, the next statement of the session may be another program's. */
const forget = 'RESET media_webhooks.claimed'

/** Names as JSON: text holds no NUL. */
const namesOf = (handlers: readonly HandlerName[]): readonly string[] =>
  handlers.map(({ name }) => JSON.stringify(name))

function acceptances(events: readonly Pick<NewEvent, 'hash'>[], stored: Rows): readonly Acceptance[] {
  const hashes = new Set(stored.map(({ hash }) => `${hash}`.replaceAll('-', '')))
  // Deleted as found: of a key that comes twice, the first is new.
  return events.map(({ hash }) => (hashes.delete(hash) ? 'accepted' : 'duplicate'))
}
