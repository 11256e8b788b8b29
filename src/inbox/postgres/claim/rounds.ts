import type { Found, Place } from './claim-statement.ts'
import type { LowMarks } from './low-marks.ts'

/**
 * The rest after reading events that cannot be claimed, as a multiple of the time that it took, and its maximum, in ms:
 * the time may be that of the network, or of the claims of others.
 */
const delayFactor = 10
const maxDelayMs = 1_000

/** A way through the events, from the first to the newest. */
export interface Round {
  event: Place['event']
  due: Place['due']
  /** The media items with an event that a claim of this round did not take. Their later events have to wait for it. */
  readonly blocked: Set<string>
}

/** The end of a claim. */
export interface ClaimEnd extends Pick<Found, 'next' | 'hasMore' | 'blocked'> {
  /** `true` if the claim found as many events as it wanted. */
  readonly isFull: boolean
  readonly tookMs: number
}

/**
 * Decides where a claim begins. Usually that is at the first events. These can all belong to media items that processes
 * have: more than a claim examines. In that case a round goes on behind them, up to the newest events, and stays there.
 * From then on, events that arrive are claimed there. The first events, and a new round that replaces the previous one,
 * take only a part of the time.
 */
export class Rounds {
  #owners: string | undefined
  /** The round that has not reached the newest events yet. */
  #advancing: Round | undefined
  /** The round that has reached them, and stays there. */
  #newest: Round | undefined
  /** The times of the next claim at the first events, and of the next step of the round that is underway. */
  #firstAt = 0
  #stepAt = 0
  /** The media items that were skipped at the first events, since this process had enough of their events. */
  #crowded: readonly string[] = []
  /** `true` if the last claim has to be followed by another one. */
  #hasMore = false
  /** `true` if the process was woken up while the first events rested. */
  #mustReadFirst = false

  /** Returns the place at which the next claim begins, as a round that begins or goes on. */
  begin(low: LowMarks, crowded: readonly string[]): Round {
    // A process has released events. They may be before the place of a round.
    if (low.owners !== this.#owners) this.startOver()
    this.#owners = low.owners
    const now = performance.now()
    const round = now >= this.#stepAt ? (this.#advancing ?? this.#newest) : (this.#newest ?? this.#advancing)
    const hasRoom = this.#crowded.some((media) => !crowded.includes(media))
    if (round !== undefined && now < this.#firstAt && !hasRoom) {
      this.#mustReadFirst ||= !this.#hasMore
      return round
    }
    this.#mustReadFirst = false
    this.#crowded = crowded
    return { event: low.event, due: low.due, blocked: new Set() }
  }

  /** Records the end of a claim. Returns `true` if the next claim can find more. */
  end(round: Round, { next, hasMore, blocked, isFull, tookMs }: ClaimEnd): boolean {
    round.event = next.event
    round.due = next.due
    for (const media of blocked) round.blocked.add(media)
    const notBefore = performance.now() + Math.min(delayFactor * tookMs, maxDelayMs)
    this.#hasMore = hasMore && !isFull
    if (round === this.#advancing) {
      this.#stepAt = isFull ? 0 : notBefore
      if (!hasMore) [this.#newest, this.#advancing] = [round, undefined]
    } else if (round !== this.#newest) {
      this.#firstAt = this.#hasMore ? notBefore : 0
      if (!hasMore) this.startOver()
      else if (!isFull) this.#advancing ??= round
    }
    return this.#hasMore
  }

  /** The time until the next claim even if no event arrives, in ms. `Infinity` if that is not needed. */
  get nextInMs(): number {
    const firstAt = this.#mustReadFirst ? this.#firstAt : Number.POSITIVE_INFINITY
    const stepAt = this.#advancing ? this.#stepAt : Number.POSITIVE_INFINITY
    return Math.max(0, Math.min(firstAt, stepAt) - performance.now())
  }

  startOver(): void {
    this.#advancing = undefined
    this.#newest = undefined
    this.#firstAt = 0
    this.#hasMore = false
  }
}
