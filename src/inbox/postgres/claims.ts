import {
  type ClaimValues,
  claimMessage,
  claimStatement,
  claimValues,
  type Found,
  type Place,
} from './claim-statement.ts'
import type { Database } from './database.ts'
import type { Lease } from './lease.ts'
import { type LowMarks, LowMarksOf } from './low-marks.ts'

/**
 * The claims of a process, as it knows them itself. It is asked before the database. If an event starts between the
 * two, it is shown as waiting, and each event is counted once.
 */
export interface OwnClaims {
  /** The id of the process, as the owner of events. `undefined` if it handles no events. */
  readonly owner?: string | undefined
  /**
   * The ids of the claimed events that have started. The others wait for a slot, or for an earlier event of their media
   * item.
   */
  readonly started?: readonly string[]
}

/** The answer to a claim. */
export interface Claimed {
  /** The new owner of the events. */
  readonly owner: string
  /** The events, each as the JSON that `PostgresJob` reads, in order of acceptance. */
  readonly events: readonly string[]
  /** The time until the next retry is due, in ms. `undefined` if no event waits for a retry. */
  readonly nextRetryInMs: number | undefined
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

/** The pause between two rounds, as a multiple of the first round's duration. */
const roundPause = 5

interface Round {
  event: Place['event']
  due: Place['due']
  /** The processes at the beginning of the round. If one has released events since, they may be before the round. */
  readonly owners: string
  readonly beganAt: number
  /** The time of the next round. `undefined` until this one has reached the newest events. */
  nextAt: number | undefined
  /** The media items with an event that a claim of this round did not take. Their later events have to wait for it. */
  readonly left: Set<string>
}

/**
 * Claims events that are due, the oldest first. It claims no event if another process has one of the same media item,
 * or if an earlier one of the media item is unclaimed. So each media item's events are handled in order across
 * processes. A claim is not flushed to the disk: if Postgres crashes and forgets it, this process can no longer record
 * anything about the event. A process claims nothing after its lease is over.
 *
 * A claim examines a limited number of events. Most of the first events can belong to media items that processes have.
 * In that case the next claims continue behind them: this is a round through all events. It stays at the newest events
 * for a time. As soon as a claim of the round has found enough, the first events are examined again.
 */
export class Claims {
  readonly #database: Database
  readonly #lease: Lease
  readonly #low: LowMarksOf
  #round: Round | undefined
  #goesOn = false
  #size = leastSize
  #claimedAt = Number.NEGATIVE_INFINITY

  constructor(database: Database, lease: Lease) {
    this.#database = database
    this.#lease = lease
    this.#low = new LowMarksOf(database)
  }

  /**
   * The number of events of the next claim. It grows while this process handles a backlog fast. If its handlers are slow,
   * other processes may have a free slot earlier, so they get the events.
   */
  get size(): number {
    return this.#size
  }

  /** Old events may have come back. */
  lookBack(): void {
    this.#low.forget()
  }

  async next({ crowded, ...request }: ClaimRequest): Promise<Claimed> {
    const { schema } = this.#database
    const limit = this.#size
    const low = await this.#low.get()
    if (this.#round?.owners !== low.owners) this.#round = undefined
    const round = this.#goesOn ? this.#round : undefined
    const without = [...crowded, ...(round?.left ?? [])]
    // It is read now, because the process may have begun a new lease in the meantime.
    const { id: owner } = this.#lease
    const values = claimValues({ ...request, limit, owner: this.#lease, low, from: round ?? low, without })
    const results = await this.#database.measure('claim', () =>
      this.#database.batchPrepared({
        name: low.hasEarlier ? 'claim_beside_earlier' : 'claim',
        statement: (parameter) => claimStatement(schema, low.hasEarlier, parameter),
        values,
        message: (statement) => claimMessage(schema, statement),
      }),
    )
    const [claimed = [], [next] = []] = results.slice(-3) as [{ claimed: string }[], { wait: string }[]]
    const found: Found = JSON.parse(claimed.at(-1)?.claimed as string)
    const events = claimed.slice(0, -1).map(({ claimed: event }) => event)
    if (found.low === null) this.#startOver()
    else if (round !== undefined) continueRound(round, found)
    else this.#examinedFirst(found, found.low)
    const isFull = events.length >= limit
    this.#goesOn = found.hasMore && !isFull
    this.#resize(isFull)
    return {
      owner,
      events,
      nextRetryInMs: next && Math.max(0, Number(next.wait)),
      hasMore: isFull || this.#goesOn || found.low === null,
    }
  }

  #resize(isFull: boolean): void {
    const now = performance.now()
    const isFast = now - this.#claimedAt < fastMs
    this.#claimedAt = now
    if (!isFull) this.#size = leastSize
    else this.#size = isFast ? Math.min(2 * this.#size, largestSize) : Math.max(this.#size / 2, leastSize)
  }

  #startOver(): void {
    this.#low.forget()
    this.#round = undefined
  }

  #examinedFirst(found: Found, low: LowMarks): void {
    this.#low.raise(low)
    const now = performance.now()
    if (!found.hasMore) this.#round = undefined
    else if (this.#round === undefined || now > (this.#round.nextAt ?? now))
      this.#round = continueRound({ ...low, beganAt: now, nextAt: undefined, left: new Set() }, found)
  }
}

function continueRound(round: Round, { next, hasMore, left }: Found): Round {
  round.event = next.event
  round.due = next.due
  const now = performance.now()
  if (!hasMore) round.nextAt ??= now + roundPause * (now - round.beganAt)
  for (const media of left) round.left.add(media)
  return round
}
