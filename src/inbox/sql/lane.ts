import type { ClaimedLane, LaneRelease, Media, SettledEvent, SettledLane, StoredEvent } from './database.ts'

/**
 * What a lane does in this process.
 *
 *   ready    -> running   it has a slot
 *   running  -> ready     an event has ended, and another follows
 *   running  -> parked    its handler is at its limit, or it waits to run alone; another lane has the slot
 *   parked   -> running   its turn has come, and a slot
 *   running  -> settling  an event that ran alone has ended: the next waits for its record
 *   settling -> ready     it is recorded
 *   any      -> leaving   it is to be released; the database may not know yet
 *   any      -> lost      another process has it, or nobody
 */
export type LaneState = 'ready' | 'running' | 'parked' | 'settling' | 'leaving' | 'lost'

interface Unrecorded {
  readonly event: SettledEvent
  readonly recorded: () => void
}

/** A lane that this process holds: what was read of it, and what is not recorded yet. */
export class HeldLane {
  readonly media: Media
  /** Process id under which it was claimed. A settle after a lost lease still names it. */
  readonly owner: string
  readonly turn: number
  readonly hasMore: boolean
  state: LaneState = 'ready'
  /** Crashes of processes that had it. 0 once an untried event has ended here. */
  marks: number
  latestAt: number | undefined
  awaits: boolean
  /** True while a settle of it is in flight: never two, and none overtakes another. */
  isInFlight = false
  /** True after a settle without an answer: it may be recorded, and the lane released. */
  mayBeSettled = false
  #release: LaneRelease | undefined
  /** When the first of its retries is due (`performance.now()`, ms): it then goes back, to be read again. */
  retryAt = Number.POSITIVE_INFINITY
  readonly #claimedPosition: number
  readonly #events: readonly StoredEvent[]
  #next = 0
  /** Position that is known to be recorded, and the last event tried. */
  #position: number
  #last: number
  #clears = false
  /** True after an event was put off, by a pause or a limit: it may still be what made a process crash. */
  #hasDeferred = false
  readonly #unrecorded = new Map<number, Unrecorded>()

  constructor({ media, turn, position, crashes, latestAt, events, hasMore, awaits }: ClaimedLane, owner: string) {
    this.media = media
    this.owner = owner
    this.turn = turn
    this.marks = crashes
    this.latestAt = latestAt
    this.awaits = awaits
    this.hasMore = hasMore
    this.#events = events
    this.#position = position
    this.#last = position
    this.#claimedPosition = position
  }

  /** The event whose turn it is. */
  get next(): StoredEvent | undefined {
    return this.#events[this.#next]
  }

  /** True once nothing of it may start or be recorded here, except what has ended before. */
  get isGone(): boolean {
    return this.state === 'lost' || this.state === 'leaving'
  }

  get hasUnrecorded(): boolean {
    return this.#unrecorded.size > 0
  }

  /** True if a settle would tell the database something. */
  get isDirty(): boolean {
    return this.#unrecorded.size > 0 || this.#release !== undefined
  }

  /** True if the event may have made a process crash. */
  isSuspect({ crashes }: StoredEvent): boolean {
    return this.marks > 0 || crashes > 0
  }

  /** Records the end of an event, and moves on to the next one. */
  ended(event: SettledEvent, recorded: () => void): void {
    this.#record(event, recorded)
    this.#last = Math.max(this.#last, event.id)
    this.#next++
    // A retry does not clear the mark. A lane's retries run before its untried events, so after each crash one of them
    // would clear it before the culprit ran.
    if (event.kind === 'release') this.#hasDeferred ||= event.awaits.length === 0
    else if (event.id > this.#claimedPosition && !this.#hasDeferred) this.clearMark()
    if (event.kind === 'retry') this.retryAt = Math.min(this.retryAt, performance.now() + event.delayMs)
    if (event.awaits.length > 0) this.awaits = true
  }

  /** Records that some handlers of the event have completed, unless its end is recorded. */
  progressed(event: SettledEvent, recorded: () => void): void {
    const known = this.#unrecorded.get(event.id)
    if (known !== undefined && known.event.kind !== 'progress') return recorded()
    this.#record(event, recorded)
  }

  #record(event: SettledEvent, recorded: () => void): void {
    const replaced = this.#unrecorded.get(event.id)
    const both = () => {
      replaced?.recorded()
      recorded()
    }
    this.#unrecorded.set(event.id, { event, recorded: both })
  }

  clearMark(): void {
    this.#clears ||= this.marks > 0
    this.marks = 0
  }

  /** Starts to release it. A rest: a limit holds its next event. */
  release(restMs?: number): void {
    if (this.isGone) return
    this.state = 'leaving'
    // All that may have made a process crash has ended.
    if (this.next === undefined && !this.hasMore && !this.#hasDeferred) this.clearMark()
    this.#release = { hasMore: this.hasMore || this.next !== undefined, restMs }
  }

  /** What to settle: everything that has no answer yet. */
  unsettled(): { readonly lane: SettledLane; readonly events: readonly SettledEvent[] } {
    const { media, turn, latestAt, awaits } = this
    const events = [...this.#unrecorded.values()].map(({ event }) => event)
    const lane = {
      media,
      turn,
      first: this.#position,
      last: this.#last,
      latestAt,
      awaits,
      clear: this.#clears,
      release: this.#release,
    }
    return { lane, events }
  }

  /** Takes in the answer to a settle of `sent`. */
  settled({ lane, events }: ReturnType<HeldLane['unsettled']>): void {
    this.mayBeSettled = false
    this.#position = lane.last
    this.#clears &&= !lane.clear
    // What is settled is not sent again.
    if (lane.release !== undefined) this.#release = undefined
    for (const event of events) {
      const known = this.#unrecorded.get(event.id)
      if (known?.event !== event) continue
      this.#unrecorded.delete(event.id)
      known.recorded()
    }
  }

  /** Gives it up: nothing of it is recorded any more. */
  lose(): void {
    this.state = 'lost'
    for (const { recorded } of this.#unrecorded.values()) recorded()
    this.#unrecorded.clear()
  }
}
