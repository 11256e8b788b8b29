import type { EventOrder } from '../../inbox.ts'
import { isTimeout } from '../../sql/batch-reader.ts'
import type { ClaimedEvent } from '../../sql/event.ts'
import type { ClaimRequest } from '../../sql/store.ts'
import type { Database } from '../database.ts'
import { hashMedia } from '../keys.ts'
import type { Claimant, PostgresLease } from '../lease.ts'
import { literal } from '../schema.ts'
import { adoptionSize, adoptStatement } from './awaited.ts'
import { type ClaimFindings, claimMessage, claimStatement, claimValues } from './claim-statement.ts'
import { toClaimed } from './claimed-event.ts'
import { CommittedMark } from './committed-mark.ts'
import { type LowMarks, LowMarkTracker } from './low-marks.ts'
import { type ClaimEnd, type Round, Rounds } from './rounds.ts'

export interface ClaimAnswer {
  /** Lease under which the events were claimed. */
  readonly owner: Claimant
  /** In order of acceptance. */
  readonly events: readonly ClaimedEvent[]
  /** Time to the next retry (ms). `undefined` if none is waiting. */
  readonly nextRetryInMs: number | undefined
  /** Delay before another claim is needed even if no event arrives (ms). `Infinity` if none is. */
  readonly nextStepInMs: number
  /** True if there may be more: the claim was full, or did not examine everything. */
  readonly hasMore: boolean
}

/** Maximum events per claim. One of 256 takes little longer than one of 64. */
export const maxSize = 256

/** If a full claim's events all start within this time (ms), the next claim doubles. */
const fastMs = 100

/** Without claims for this time (ms), the size resets: the next events may be slower. */
const staleMs = 1_000

/**
 * Claims due events, oldest first. Each media item's events stay in order across processes: a claim skips an event
 * while another process holds one of the same media item, or while an earlier one is unclaimed. Once its lease is over,
 * a process claims nothing. A claim examines a bounded number of events; {@link Rounds} decides where it starts.
 *
 * A claim's commit is not flushed to disk. If Postgres crashes and forgets it, another process may claim the event too:
 * both run its handlers, but only one can commit a handler's transaction.
 */
export class PostgresClaims {
  readonly #database: Database
  readonly #lease: PostgresLease
  readonly #committed = new CommittedMark()
  readonly #low: LowMarkTracker
  readonly #rounds = new Rounds()
  /** True if events may await handlers of this process. */
  #mayAdopt = true
  /** Adopted events that this process has not claimed. */
  #adopted = 0
  readonly #ttlMs: number
  readonly #isStrict: boolean
  readonly #minSize: number
  #size: number
  #processes = 1
  /** Time of the last claim that found events (`performance.now()`). */
  #claimedAt = Number.NEGATIVE_INFINITY
  /** Number of events in that claim. */
  #lastFound = 0
  #isQuiet = false

  /** `concurrency`: events handled at a time. `ttlMs`: how long keys are remembered. */
  constructor(database: Database, lease: PostgresLease, concurrency: number, ttlMs: number, order?: EventOrder) {
    this.#ttlMs = ttlMs
    this.#isStrict = order === 'strict'
    this.#minSize = Math.min(2 * concurrency, maxSize)
    this.#size = this.#minSize
    this.#database = database
    this.#lease = lease
    this.#low = new LowMarkTracker(database, this.#committed)
  }

  /** How many events to hold, running ones included. Slow handlers leave the rest to processes with free slots. */
  get size(): number {
    if (performance.now() - this.#claimedAt > staleMs) this.#size = this.#minSize
    return this.#size
  }

  /** True if a claim would find nothing until an event is accepted or replayed. */
  get isQuiet(): boolean {
    return this.#isQuiet
  }

  get processes(): number {
    return this.#processes
  }

  /** Looks for new low marks, and adopts: old events may be back. */
  lookBack(): void {
    this.#mayAdopt = true
    this.#low.forget()
  }

  /** Adopts at the next claim: events may await handlers of this process. */
  lookForAwaited(): void {
    this.#mayAdopt = true
  }

  /** Adopts again after a while without claims: other processes may have claimed what was adopted. */
  lookAround(): void {
    this.#mayAdopt = true
    this.#adopted = 0
  }

  /** @param ask called just before the claim is sent */
  async next(ask: () => ClaimRequest): Promise<ClaimAnswer> {
    const { schema } = this.#database
    this.#isQuiet = false
    const low = await this.#low.get()
    this.#processes = low.owners.split(',').length
    // Read after the marks: by now the process may have a new lease, or fewer events.
    const owner = this.#lease.self
    const { skippedMedia, ...request } = ask()
    const skipped = skippedMedia.map(hashMedia)
    const round = this.#rounds.begin(low, skipped)
    const without = [...skipped, ...round.blocked]
    const { limit } = request
    const values = claimValues({ ...request, owner, low, from: round, without, ttlMs: this.#ttlMs })
    const adopts = this.#mayAdopt && this.#adopted === 0
    // Before sending: events may be released while the claim is in flight.
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
        // This many large events may not arrive in time.
        if (isTimeout(error)) this.#size = Math.ceil(this.#size / 2)
        throw error
      })
    const [claimed = []] = results.slice(-2) as [{ claimed: string }[]]
    const found: ClaimFindings = JSON.parse(claimed.at(-1)?.claimed as string)
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

  /** Returns true if the next claim can find more. */
  #endRound(round: Round, { event, due }: LowMarks, end: ClaimFindings & ClaimEnd): boolean {
    if (end.low === null) {
      this.#low.forget()
      this.#rounds.startOver()
      return true
    }
    // It started at the low marks, so it has read everything above them.
    if (round.event === event && round.due === due) this.#low.raise(end.low)
    return this.#rounds.end(round, end)
  }

  /** Shrinks only after a mostly empty claim: otherwise every other claim of a steady load would find nothing. */
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
