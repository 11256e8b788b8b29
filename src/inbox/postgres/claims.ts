import { type ClaimValues, claimMessage, claimStatement, claimValues, type Found } from './claim-statement.ts'
import { CommittedMark } from './committed-mark.ts'
import type { Database } from './database.ts'
import type { Lease } from './lease.ts'
import { type LowMarks, LowMarksOf } from './low-marks.ts'
import { type ClaimEnd, type Round, Rounds } from './rounds.ts'

/**
 * The claims of a process, as it knows them itself. It is asked before the database. If an event starts between the
 * two, it is shown as waiting, and each event is counted once.
 */
export interface OwnClaims {
  /** The id of the process, as the owner of events. `undefined` if it handles no events. */
  readonly owner?: string | undefined
  /**
   * The start of their attempts, by the ids of the claimed events that have started. The others wait for a slot, or for an
   * earlier event of their media item.
   */
  readonly started?: ReadonlyMap<string, Date>
}

/** The answer to a claim. */
export interface Claimed {
  /** The new owner of the events. */
  readonly owner: string
  /** The events, each as the JSON that `PostgresJob` reads, in order of acceptance. */
  readonly events: readonly string[]
  /** The time until the next retry is due, in ms. `undefined` if no event waits for a retry. */
  readonly nextRetryInMs: number | undefined
  /** The time until the next claim even if no event arrives, in ms. `Infinity` if that is not needed. */
  readonly nextStepInMs: number
  /** `true` if there may be more: the claim found as many events as it wanted, or did not examine all of them. */
  readonly hasMore: boolean
}

/** A request of a process for events. */
export interface ClaimRequest extends Pick<ClaimValues, 'withSuspect' | 'held'> {
  /** The hashes of media items that the process already has enough events of. */
  readonly crowded: readonly string[]
}

/**
 * The number of events of a claim, at least and at most. A claim of 256 events takes little longer than one of 64: a
 * backlog was handled in about 0.7 of the time.
 */
const leastSize = 64
const largestSize = 256

/** The time in which half of a claim's events have to begin, in ms, so that the next one is larger. */
const fastMs = 50

/**
 * Claims events that are due, the oldest first. It claims no event if another process has one of the same media item,
 * or if an earlier one of the media item is unclaimed. So each media item's events are handled in order across
 * processes. A claim is not flushed to the disk: if Postgres crashes and forgets it, another process can also claim
 * the event. Both run its handlers, and a transaction of a handler is committed by one of them. A process claims nothing after
 * its lease is over.
 *
 * A claim examines a limited number of events. {@link Rounds} decides where it begins.
 */
export class Claims {
  readonly #database: Database
  readonly #lease: Lease
  readonly #committed = new CommittedMark()
  readonly #low: LowMarksOf
  readonly #rounds = new Rounds()
  #size = leastSize
  #processes = 1
  #claimedAt = Number.NEGATIVE_INFINITY

  constructor(database: Database, lease: Lease) {
    this.#database = database
    this.#lease = lease
    this.#low = new LowMarksOf(database, this.#committed)
  }

  /**
   * The number of events of the next claim. It grows while this process handles a backlog fast. If its handlers are slow,
   * other processes may have a free slot earlier, so they get the events.
   */
  get size(): number {
    return this.#size
  }

  /** The number of processes at the last claim. */
  get processes(): number {
    return this.#processes
  }

  /** Old events may have come back. */
  lookBack(): void {
    this.#low.forget()
  }

  async next({ crowded, ...request }: ClaimRequest): Promise<Claimed> {
    const { schema } = this.#database
    const limit = this.#size
    const low = await this.#low.get()
    this.#processes = low.owners.split(',').length
    const round = this.#rounds.begin(low, crowded)
    const without = [...crowded, ...round.left]
    // It is read now, because the process may have begun a new lease in the meantime.
    const { id: owner } = this.#lease
    const values = claimValues({ ...request, limit, owner: this.#lease, low, from: round, without })
    const startedAt = performance.now()
    const results = await this.#database.measure('claim', () =>
      this.#database.batchPrepared({
        name: low.hasEarlier ? 'claim_beside_earlier' : 'claim',
        statement: (parameter) => claimStatement(schema, low.hasEarlier, parameter),
        values,
        message: (statement) => claimMessage(schema, statement),
      }),
    )
    const [claimed = []] = results.slice(-2) as [{ claimed: string }[]]
    const found: Found = JSON.parse(claimed.at(-1)?.claimed as string)
    const events = claimed.slice(0, -1).map(({ claimed: event }) => event)
    const isFull = events.length >= limit
    this.#committed.saw(found.transactions)
    const hasMore = this.#examined(round, low, { ...found, isFull, tookMs: performance.now() - startedAt })
    if (isFull || !hasMore) this.#resize(events.length)
    return {
      owner,
      events,
      nextRetryInMs: found.nextRetryInMs ?? undefined,
      nextStepInMs: this.#rounds.nextInMs,
      hasMore: isFull || hasMore,
    }
  }

  /** Returns `true` if the next claim can find more. */
  #examined(round: Round, { event, due }: LowMarks, end: Found & ClaimEnd): boolean {
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
   * It keeps the size that a steady load needs. While each claim that was not full began again with the least size, 64
   * callers filled every second claim exactly, and the one after it found nothing. In three runs, each event took 1 to 12 %
   * more CPU.
   */
  #resize(found: number): void {
    const now = performance.now()
    const isFast = now - this.#claimedAt < fastMs
    this.#claimedAt = now
    const isFull = found >= this.#size
    if (isFull && isFast) this.#size = Math.min(2 * this.#size, largestSize)
    else if (isFull || (found > 0 && found <= this.#size / 4)) this.#size = Math.max(this.#size / 2, leastSize)
  }
}
