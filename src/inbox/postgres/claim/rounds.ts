import type { ClaimFindings, ClaimPosition } from './claim-statement.ts'
import type { LowMarks } from './low-marks.ts'

/** Delay after unclaimable events, as a multiple of the claim's time, and its maximum (ms), for slow networks. */
const delayFactor = 10
const maxDelayMs = 1_000

/** A pass over the events, from the first to the newest. */
export interface Round {
  event: ClaimPosition['event']
  due: ClaimPosition['due']
  /** Media items with an event that this round did not claim. Their later events must wait for it. */
  readonly blocked: Set<string>
}

export interface ClaimEnd extends Pick<ClaimFindings, 'next' | 'hasMore' | 'blocked'> {
  /** True if the claim found as many events as it asked for. */
  readonly isFull: boolean
  readonly tookMs: number
}

/**
 * Decides where a claim starts: usually at the first events. If these all belong to media items that processes hold,
 * and are more than a claim examines, a round moves past them to the newest events, stays there and claims what
 * arrives. Rereading the first events, and a new round to replace the old one, take only a share of the time.
 */
export class Rounds {
  #owners: string | undefined
  /** The round on its way to the newest events. */
  #advancing: Round | undefined
  /** The round that has arrived there, and stays. */
  #newest: Round | undefined
  /** Earliest time of a claim at the first events, and of the advancing round's next step (`performance.now()`). */
  #firstAt = 0
  #stepAt = 0
  /** Media items skipped at the first events, because this process held enough of theirs. */
  #skipped: readonly string[] = []
  /** True if another claim must follow the last one. */
  #hasMore = false
  /** True if the process was woken while the first events were backing off. */
  #mustReadFirst = false

  /** Returns the round of the next claim: the current one, or a new one at the low marks. */
  begin(low: LowMarks, skipped: readonly string[]): Round {
    // Events were released, maybe before a round's position.
    if (low.owners !== this.#owners) this.startOver()
    this.#owners = low.owners
    const now = performance.now()
    const round = now >= this.#stepAt ? (this.#advancing ?? this.#newest) : (this.#newest ?? this.#advancing)
    const hasRoom = this.#skipped.some((media) => !skipped.includes(media))
    if (round !== undefined && now < this.#firstAt && !hasRoom) {
      this.#mustReadFirst ||= !this.#hasMore
      return round
    }
    this.#mustReadFirst = false
    this.#skipped = skipped
    return { event: low.event, due: low.due, blocked: new Set() }
  }

  /** Ends a claim. Returns true if the next one can find more. */
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

  /** Delay before another claim is needed even if no event arrives (ms). `Infinity` if none is. */
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
