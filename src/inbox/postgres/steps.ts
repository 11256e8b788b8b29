import { randomUUID } from 'node:crypto'
import { processName } from '../../internal/process-name.ts'
import { handlersJson, type PublishedHandlers } from '../engine/owed-handlers.ts'
import type { Acceptance, HandlerName } from '../inbox.ts'
import { ByteLimit } from '../sql/batch-reader.ts'
import type {
  ClaimedLane,
  ClaimedLanes,
  ClaimRequest,
  HeldEvent,
  Media,
  NewEvent,
  NewUnreadable,
  OverdueExpectation,
  RecordedLane,
  RunningEvents,
  SettledEvent,
  SettledLane,
  SharedSteps,
  Steps,
  Surroundings,
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
  step,
  transaction,
} from './step.ts'

/** Events of a lane that a claim reads. */
const maxEvents = 256

/** Bytes for each lane, of which the first event is read whatever its size: a claim takes as many lanes as there are bytes for. */
const bytesPerLane = 10_000

/** Lanes that an adoption takes in at a time. */
const maxAdopted = 64

/** How long claims begin where the last one did (ms). Then one looks at all: accepts may have committed late. */
const lookBackMs = 1_000

/** Where a claim begins that looks at all ready lanes. */
const fromStart = '-infinity'

/** Statement timeout of a takeover, and of closing (ms). */
const slowStepMs = 30_000

export interface StepsOptions {
  readonly isStrict: boolean
  readonly leaseMs: number
  readonly ttlMs: number
}

/** The steps of the Postgres inbox: the messages around the statements, and what their answers mean. */
export class PostgresSteps implements Steps, SharedSteps {
  readonly shared = this
  /** Processes that have joined, as of the last renewal. */
  processes = 1
  readonly #isStrict: boolean
  /** Made once: a string keeps its hash, by which connections find it. */
  readonly #texts: Readonly<Record<'accept' | 'read' | 'settle', string>>
  readonly #leaseMs: number
  readonly #expiration: Expiration
  /** Bytes of events that a claim reads. */
  readonly #limit = new ByteLimit()
  /** Where claims begin to read, and when they last read from the start. */
  #from = fromStart
  #startedOverAt = 0

  constructor({ isStrict, leaseMs, ttlMs }: StepsOptions) {
    this.#isStrict = isStrict
    this.#texts = {
      accept: sql.accept(isStrict),
      read: sql.readClaimed(isStrict),
      settle: sql.settle(isStrict),
    }
    this.#leaseMs = leaseMs
    this.#expiration = new Expiration(ttlMs)
  }

  accept(events: readonly NewEvent[]): PostgresStep<readonly Acceptance[]> {
    const { parts, at } = this.#accepting(events, events)
    return step('accepting', parts, (results) => acceptances(events, results[at] as Rows))
  }

  /** Message of an accept. Its result is at index `at`. */
  #accepting(
    events: readonly Omit<NewEvent, 'changes'>[],
    changing: readonly NewEvent[],
    { gone = '', unreadable = '', since = 'NULL' } = {},
  ): { readonly parts: Message['parts']; readonly at: number } {
    const given = acceptColumns(events)
    const changes = changeColumns(changing)
    if (changes === undefined && gone === '')
      return { parts: [namedQuery('accept', this.#texts.accept, ...given)], at: 0 }
    const parts = changes === undefined ? '' : sql.endExpectations + sql.beginExpectations
    const values = [...given, unreadable, ...(changes?.values ?? [])]
    const accept = query(sql.accept(this.#isStrict, gone, parts, since), ...values)
    if (changes === undefined) return { parts: transaction(accept), at: 1 }
    return { parts: transaction(accept, sql.useIndexes, query(sql.removeEnded, changes.subjects)), at: 1 }
  }

  overdue(limit: number) {
    const parts = transaction(sql.useIndexes, query(sql.overdue, limit), sql.nextDeadline)
    return step('patient', parts, (results) => {
      const [overdue, next] = results.slice(-3) as [Rows, Rows]
      return {
        overdue: overdue.map((row) => ({
          hash: `${row['hash']}`,
          media: `${row['media']}`,
          place: row,
          offered: row['isOffered'] === true ? `${row['event']}` : undefined,
        })),
        nextInMs: waitOf(next[0]),
      }
    })
  }

  fire(overdue: readonly OverdueExpectation[]): PostgresStep<number> {
    const events = overdue.map(({ place, changes }) => ({ ...(place as Omit<NewEvent, 'changes'>), changes }))
    const { parts, at } = this.#accepting(events, events, { gone: sql.firing })
    const [start = begin, ...rest] = parts
    const media = overdue.map((each) => each.media)
    return step('patient', [start, query(sql.lockLanes, media), ...rest], (results) => (results[at + 1] as Rows).length)
  }

  claim({ owner, lanes: room, marked, waits }: ClaimRequest): PostgresStep<ClaimedLanes> {
    const from = this.#claimFrom()
    const lanes = this.#fitting(room)
    const claim = namedQuery('claim', sql.claim, owner, lanes, marked, from)
    const wait = query(sql.awaitLane, owner, from)
    // A claim that a crash of the server takes back is found by the settle that follows it: it needs no wait for the disk.
    const start = `${begin}; SET LOCAL synchronous_commit = off`
    const before = waits ? [start, "SET LOCAL lock_timeout = '1s'", wait] : [start]
    const next = namedQuery('next', sql.nextReady, from)
    const parts = [...before, claim, commit, this.#read, next, forget]
    return this.#claimingStep(waits ? 'patient' : 'handling', parts, (results) => {
      const [claimed, , read, ready] = results.slice(-5) as [Rows, Rows, Rows, Rows]
      const { count, first } = claimed[0] as { count: number; first: string | null }
      if (first !== null) this.#from = first
      if (from === fromStart) this.#startedOverAt = performance.now()
      const isHeldUp = ready[0]?.['held_up'] === true && count < lanes
      // An accept that began before what was claimed may commit after it: only a claim from the start sees its lanes.
      const isPartial = from !== fromStart && count < lanes
      const lookInMs = isPartial ? lookBackMs : count >= lanes && lanes < room ? 0 : Number.POSITIVE_INFINITY
      return { lanes: toLanes(read), nextInMs: Math.min(waitOf(ready[0]), lookInMs), isHeldUp }
    })
  }

  #claimFrom(): string {
    return performance.now() - this.#startedOverAt <= lookBackMs ? this.#from : fromStart
  }

  get #read(): Query {
    return namedQuery('read', this.#texts.read, maxEvents + 1, this.#limit.most)
  }

  #fitting(lanes: number): number {
    return Math.min(lanes, Math.floor(this.#limit.most / bytesPerLane))
  }

  adopt(owner: string, known: readonly Media[]): PostgresStep<readonly ClaimedLane[]> {
    const lanes = this.#fitting(maxAdopted)
    return this.#claiming([query(sql.awaitOwn, owner, known), query(sql.adopt, owner, known, lanes)])
  }

  claimAwaited(owner: string, names: readonly string[], room: number): PostgresStep<readonly ClaimedLane[]> {
    const lanes = this.#fitting(room)
    return this.#claiming([query(sql.claimAwaited, owner, names, lanes)])
  }

  #claiming(claim: readonly Query[]): PostgresStep<readonly ClaimedLane[]> {
    const parts = [...transaction(...claim), this.#read, forget]
    return this.#claimingStep('patient', parts, (results) => toLanes(results.at(-2) as Rows))
  }

  /** After a timeout, the next one reads half as much: the link may be slow. */
  #claimingStep<Result>(...[on, parts, read]: Parameters<typeof step<Result>>): PostgresStep<Result> {
    return { ...step(on, parts, read), timedOut: () => this.#limit.exceeded(this.#limit.most) }
  }

  settle(owner: string, lanes: readonly SettledLane[], events: readonly SettledEvent[]) {
    const columns = laneColumns(lanes)
    const lock = namedQuery('lock_held', sql.lockHeld, owner, ...columns.slice(0, 3))
    const settle = namedQuery('settle', this.#texts.settle, owner, ...columns, ...settledColumns(events))
    const awaiting = lanes.filter(({ awaits }) => awaits).map(({ media }) => media)
    const gather = awaiting.length > 0 ? [query(sql.gatherAwaits, awaiting)] : []
    return step('handling', transaction(lock, settle, ...gather), (results): readonly RecordedLane[] =>
      (results[2] as Rows).map((row) => ({ media: `${row['media']}`, readyInMs: waitOf(row) })),
    )
  }

  count({ owner, media, turn, id }: HeldEvent, from: number, to: number): PostgresStep<boolean> {
    const count = namedQuery('count', sql.count, id, from, to, media, owner, turn)
    return step('handling', [count], ([rows]) => (rows as Rows).length > 0)
  }

  join(owner: string, handlers: readonly HandlerName[]): PostgresStep<void> {
    const join = query(sql.join, owner, this.#leaseMs, handlersJson(handlers), processName)
    return step('renewing', transaction(join, query(sql.haveHandlers, encodeNames(handlers))), () => {})
  }

  leave(owner: string, handlers: readonly HandlerName[]): PostgresStep<void> {
    const leave = sql.leave.map((text) => query(text, owner))
    const remove = query(sql.removeHandlers, owner, encodeNames(handlers))
    return step('renewing', transaction(...leave, remove), () => {}, slowStepMs)
  }

  renew(owner: string, running: RunningEvents): PostgresStep<boolean> {
    const json = running === undefined ? '' : JSON.stringify(running)
    const renew = namedQuery('renew', sql.renew, owner, this.#leaseMs, json)
    return step('renewing', transaction(renew), ([, renewed]) => (renewed as Rows).length > 0)
  }

  lookAround(owner: string): PostgresStep<Surroundings> {
    return step('patient', [query(sql.lookAround, owner)], ([rows]) => {
      const [found] = rows as unknown as [Surroundings & { processes: number }]
      this.processes = found.processes
      return found
    })
  }

  takeOver(): PostgresStep<boolean> {
    const parts = transaction(sql.useIndexes, ...sql.takeOver)
    return step('patient', parts, (results) => results.at(-2)?.[0]?.['more'] === true, slowStepMs)
  }

  publish(owner: string, handlers: readonly HandlerName[], former: readonly HandlerName[]): PostgresStep<void> {
    const names = encodeNames(handlers)
    const gone = encodeNames(former).filter((name) => !names.includes(name))
    const publish = query(sql.publish, owner, handlersJson(handlers))
    const parts = transaction(publish, query(sql.haveHandlers, names), query(sql.removeHandlers, owner, gone))
    return step('renewing', parts, () => {})
  }

  handlers(): PostgresStep<PublishedHandlers> {
    const parsed = (rows: Rows = [], name: string) =>
      rows.flatMap(({ [name]: json }) => (json === null ? [] : [JSON.parse(`${json}`)]))
    return step('handling', [sql.handlers], ([rows]) => ({
      live: parsed(rows, 'handlers'),
      removed: parsed(rows, 'removed'),
    }))
  }

  replay(dead: readonly { readonly id: number; readonly media: Media }[]): PostgresStep<readonly number[]> {
    const [ids, media] = [dead.map(({ id }) => id), dead.map((each) => each.media)]
    const parts = transaction(query(sql.lockLanes, media), query(sql.replay(this.#isStrict), ids))
    return step('reading', parts, (results) => (results[2] as Rows).map(({ former }) => former as number))
  }

  keep({ hash, head, body }: NewUnreadable): PostgresStep<void> {
    return { ...step('reading', [query(sql.keep, hash, head, body)], () => {}), isRepeatable: true }
  }

  replace(unreadable: string, events: readonly NewEvent[]) {
    // FOR UPDATE: the second of two replays waits for the first, and then finds the delivery gone.
    const find = query('SELECT FROM $event WHERE hash = $1::uuid AND body IS NOT NULL FOR UPDATE', unreadable)
    const replacing = { gone: sql.replacing, unreadable, since: 'now()' }
    const { parts, at } = this.#accepting(events, events, replacing)
    const [start = begin, ...rest] = parts
    return step('reading', [start, find, ...rest], (results): readonly Acceptance[] | 'gone' =>
      results[1]?.length === 0 ? 'gone' : acceptances(events, results[at + 1] as Rows),
    )
  }

  retry(hash: string): PostgresStep<boolean> {
    const parts = transaction(...sql.retry.map((text) => query(text, hash)))
    return step('reading', parts, (results) => (results[2] as Rows).length > 0)
  }

  expire() {
    return this.#expiration.next(randomUUID())
  }
}

const toLanes = (rows: Rows): readonly ClaimedLane[] => readLanes(rows as unknown as readonly ClaimedRow[], maxEvents)

const waitOf = (row: Rows[number] | undefined): number => (row?.['wait'] ?? Number.POSITIVE_INFINITY) as number

/** Behind a transaction pooler, the next statement of the session may be another program's. */
const forget = 'RESET media_webhooks.claimed'

/** Names as JSON: text holds no NUL. */
const encodeNames = (handlers: readonly HandlerName[]): readonly string[] =>
  handlers.map(({ name }) => JSON.stringify(name))

function acceptances(events: readonly Pick<NewEvent, 'hash'>[], stored: Rows): readonly Acceptance[] {
  const hashes = new Set(stored.map(({ hash }) => `${hash}`.replaceAll('-', '')))
  // Deleted as found: of a key that comes twice, the first is new.
  return events.map(({ hash }) => (hashes.delete(hash) ? 'accepted' : 'duplicate'))
}
