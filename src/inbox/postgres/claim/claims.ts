import type { EventOrder } from '../../inbox.ts'
import type { ClaimedEvent } from '../../sql/event.ts'
import { isTimeout } from '../../sql/piece.ts'
import type { Want } from '../../sql/store.ts'
import type { Database } from '../database.ts'
import { hashMedia } from '../keys.ts'
import type { Claimant, PostgresLease } from '../lease.ts'
import { literal } from '../schema.ts'
import { adoptionSize, adoptStatement } from './awaited.ts'
import { claimMessage, claimStatement, claimValues, type Found } from './claim-statement.ts'
import { toClaimed } from './claimed-event.ts'
import { CommittedMark } from './committed-mark.ts'
import { type LowMarks, LowMarkTracker } from './low-marks.ts'
import { type ClaimEnd, type Round, Rounds } from './rounds.ts'

/** What a claim has found. */
export interface ClaimAnswer {
  /** The lease that the events were claimed with. */
  readonly owner: Claimant
  /** In order of acceptance. */
  readonly events: readonly ClaimedEvent[]
  /** The time until the next retry is due, in ms. `undefined` if no event waits for a retry. */
  readonly nextRetryInMs: number | undefined
  /** The time until the next claim even if no event arrives, in ms. `Infinity` if that is not needed. */
  readonly nextStepInMs: number
  /** `true` if there may be more: the claim found as many events as it wanted, or did not examine all of them. */
  readonly hasMore: boolean
}

/** Maximum number of events of a claim. One of 256 takes little longer than one of 64: a backlog took 0.7 of the time. */
export const maxSize = 256

/** The time in which as many events as the size must begin, in ms, so that the next claim is larger. */
const fastMs = 100

/** The time after which the size begins again with the least one, in ms: the next events may take longer. */
const staleMs = 1_000

/**
 * Claims events that are due, the oldest first. It claims no event if another process has one of the same media item,
 * or if an earlier one of the media item is unclaimed. So each media item's events are handled in order across
 * processes. A claim is not flushed to the disk: if Postgres crashes and forgets it, another process can also claim
 * the event. Both run its handlers, and a transaction of a handler is committed by one of them. A process claims nothing after
 * its lease is over.
 *
 * A claim examines a limited number of events. {@link Rounds} decides where it begins.
 */
export class PostgresClaims {
  readonly #database: Database
  readonly #lease: PostgresLease
  readonly #committed = new CommittedMark()
  readonly #low: LowMarkTracker
  readonly #rounds = new Rounds()
  /** `true` if events may await handlers of this process. */
  #mayAdopt = true
  /** Adopted events that no claim of this process has taken yet. */
  #adopted = 0
  readonly #ttlMs: number
  readonly #isStrict: boolean
  readonly #minSize: number
  #size: number
  #processes = 1
  /** The time of that claim (`performance.now()`). */
  #claimedAt = Number.NEGATIVE_INFINITY
  /** The number of events of the last claim that found any. */
  #lastFound = 0
  #isQuiet = false

  /**
   * @param concurrency the number of events that the process handles at a time
   * @param ttlMs the time for which keys are remembered (ms)
   */
  constructor(database: Database, lease: PostgresLease, concurrency: number, ttlMs: number, order?: EventOrder) {
    this.#ttlMs = ttlMs
    this.#isStrict = order === 'strict'
    this.#minSize = Math.min(2 * concurrency, maxSize)
    this.#size = this.#minSize
    this.#database = database
    this.#lease = lease
    this.#low = new LowMarkTracker(database, this.#committed)
  }

  /**
   * The number of events that this process wants to have, running ones included: twice its concurrency, and more while it
   * begins all it claims soon. If its handlers are slow, the rest is for processes with a free slot.
   */
  get size(): number {
    if (performance.now() - this.#claimedAt > staleMs) this.#size = this.#minSize
    return this.#size
  }

  /** `true` if another claim would find nothing until an event is accepted or replayed. */
  get isQuiet(): boolean {
    return this.#isQuiet
  }

  /** The number of processes at the last claim. */
  get processes(): number {
    return this.#processes
  }

  /** Old events may have come back. */
  lookBack(): void {
    this.#mayAdopt = true
    this.#low.forget()
  }

  /** Events may await handlers of this process. */
  lookForAwaited(): void {
    this.#mayAdopt = true
  }

  /** A while has passed since the last claim: other processes may have taken the adopted events. */
  lookAround(): void {
    this.#mayAdopt = true
    this.#adopted = 0
  }

  /** @param ask called when the claim is sent */
  async next(ask: () => Want): Promise<ClaimAnswer> {
    const { schema } = this.#database
    this.#isQuiet = false
    const low = await this.#low.get()
    this.#processes = low.owners.split(',').length
    // The process may have begun a new lease, or lost events, while the marks were read.
    const owner = this.#lease.self
    const { crowded: media, ...request } = ask()
    const crowded = media.map(hashMedia)
    const round = this.#rounds.begin(low, crowded)
    const without = [...crowded, ...round.blocked]
    const { limit } = request
    const values = claimValues({ ...request, owner, low, from: round, without, ttlMs: this.#ttlMs })
    const adopts = this.#mayAdopt && this.#adopted === 0
    // Events may be released while the claim is on its way.
    if (adopts) this.#mayAdopt = false
    const startedAt = performance.now()
    const results = await this.#database
      .measure('claim', () =>
        this.#database.batchPrepared({
          name: 'claim',
          statement: (parameter) => claimStatement(schema, parameter, this.#isStrict),
          values,
          message: (statement) =>
            claimMessage(schema, statement, adopts ? adoptStatement(schema, literal(owner.id)) : undefined),
        }),
      )
      .catch((error) => {
        // So many large events may not arrive in time.
        if (isTimeout(error)) this.#size = Math.ceil(this.#size / 2)
        throw error
      })
    const [claimed = []] = results.slice(-2) as [{ claimed: string }[]]
    const found: Found = JSON.parse(claimed.at(-1)?.claimed as string)
    const events = claimed.slice(0, -1).map(({ claimed: event }) => toClaimed(event))
    const isFull = events.length >= limit
    this.#isQuiet = this.#low.isEmptyAt(found.transactions.lastId)
    this.#committed.saw(found.transactions)
    const adopted = adopts ? results.find(([row]) => row?.['adopted'] === true) : undefined
    this.#adopted = Math.max(0, this.#adopted + (adopted?.length ?? 0) - events.length)
    if (adopted?.length === adoptionSize) this.#mayAdopt = true
    const hasMore = this.#endRound(round, low, { ...found, isFull, tookMs: performance.now() - startedAt })
    if (isFull || !hasMore) this.#resize(events.length, isFull)
    return {
      owner,
      events,
      nextRetryInMs: found.nextRetryInMs ?? undefined,
      nextStepInMs: this.#rounds.nextInMs,
      hasMore: isFull || hasMore,
    }
  }

  /** Returns `true` if the next claim can find more. */
  #endRound(round: Round, { event, due }: LowMarks, end: Found & ClaimEnd): boolean {
    if (end.low === null) {
      this.#low.forget()
      this.#rounds.startOver()
      return true
    }
    // It began at the low marks, so it has read everything above them.
    if (round.event === event && round.due === due) this.#low.raise(end.low)
    return this.#rounds.end(round, end)
  }

  /**
   * Keeps the size that a steady load needs. If claims that are not full lowered it further, 64 callers would fill every
   * second claim exactly, and the one after it would find nothing: each event took 1 to 12 % more CPU.
   */
  #resize(found: number, isFull: boolean): void {
    if (found === 0) return
    const now = performance.now()
    const isFast = now - this.#claimedAt < (fastMs * this.#lastFound) / this.#size
    this.#claimedAt = now
    this.#lastFound = found
    if (isFull && isFast) this.#size = Math.min(2 * this.#size, maxSize)
    else if (isFull) this.#size = Math.min(this.#size, Math.max(this.#size / 2, this.#minSize))
    else if (found <= this.#size / 4 && this.#size > 2 * this.#minSize) this.#size /= 2
  }
}
