import { LRUCache } from 'lru-cache'
import { sizeOf } from '../../events/json.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { AcceptedEvent, Expectation, ExpectationChanges } from '../inbox.ts'
import type { OpenExpectation } from '../reading.ts'

/** Maximum number of open expectations, and of remembered ends. */
const max = 100_000

/** Memory limits (bytes). An expectation keeps the event that began it, an end only its media id. */
const maxSize = { open: 128 * 1_048_576, ends: 32 * 1_048_576 }

/** Delay before an overdue event is offered again to a full inbox (ms). */
const fullDelayMs = 1_000

interface Open extends OpenExpectation {
  readonly overdue: AcceptedEvent
  readonly size: number
  timer?: Timer
}

/** Expectations in memory: a timer for each, and the newest ends. They end with the process. */
export class MemoryExpectations {
  readonly #accept: (overdue: AcceptedEvent) => boolean
  readonly #onDropped: (expectation: OpenExpectation) => void
  readonly #byMedia = new Map<string, Set<Open>>()
  /** Last end per rule and media item (ms since the epoch). */
  #ends: LRUCache<string, number> | undefined
  #size = 0
  #bytes = 0
  #isStopped = false

  /** @param accept returns `false` if the inbox is full */
  constructor(accept: (overdue: AcceptedEvent) => boolean, onDropped: (expectation: OpenExpectation) => void) {
    this.#accept = accept
    this.#onDropped = onDropped
  }

  get size(): number {
    return this.#size
  }

  apply(mediaId: string, { at, begins, ends }: ExpectationChanges): void {
    for (const rule of ends) this.#end(mediaId, rule, at)
    for (const expectation of begins) this.#begin(expectation, at)
  }

  #end(mediaId: string, rule: string, at: Date): void {
    this.#ends ??= new LRUCache({ max, maxSize: maxSize.ends, sizeCalculation: (_, key) => 64 + 2 * key.length })
    const key = JSON.stringify([rule, mediaId])
    this.#ends.set(key, Math.max(at.getTime(), this.#ends.get(key) ?? Number.NEGATIVE_INFINITY))
    for (const open of this.#byMedia.get(mediaId) ?? [])
      if (open.rule === rule && open.beganAt <= at) this.#remove(open)
  }

  #begin(expectation: Expectation, at: Date): void {
    const { rule, dueAt, overdue } = expectation
    const open: Open = {
      rule,
      mediaId: overdue.event.mediaId,
      beganAt: at,
      dueAt,
      overdue,
      size: sizeOf(overdue.event),
    }
    const endedAt = this.#ends?.get(JSON.stringify([open.rule, open.mediaId])) ?? Number.NEGATIVE_INFINITY
    if (at.getTime() <= endedAt) return
    // A claim pending at the stop may still be accepted; its timer would report to a closed inbox.
    if (this.#isStopped) return
    if (this.#size >= max || this.#bytes >= maxSize.open) return this.#onDropped(open)
    const ofMedia = this.#byMedia.get(open.mediaId)
    if (ofMedia === undefined) this.#byMedia.set(open.mediaId, new Set([open]))
    else ofMedia.add(open)
    this.#size++
    this.#bytes += open.size
    this.#wait(open, open.dueAt.getTime() - Date.now())
  }

  #wait(open: Open, ms: number): void {
    open.timer = setTimeout(() => this.#due(open), ms)
    unref(open.timer)
  }

  #due(open: Open): void {
    if (this.#accept(open.overdue)) this.#remove(open)
    else this.#wait(open, fullDelayMs)
  }

  #remove(open: Open): void {
    clearTimeout(open.timer)
    const ofMedia = this.#byMedia.get(open.mediaId)
    ofMedia?.delete(open)
    if (ofMedia?.size === 0) this.#byMedia.delete(open.mediaId)
    this.#size--
    this.#bytes -= open.size
  }

  /** Lists the open expectations due first. Sorts in small batches, because it blocks deliveries. */
  list(limit: number): readonly OpenExpectation[] {
    let first: readonly Open[] = []
    let candidates: Open[] = []
    let last = Number.POSITIVE_INFINITY
    for (const ofMedia of this.#byMedia.values())
      for (const open of ofMedia) {
        if (open.dueAt.getTime() < last) candidates.push(open)
        if (candidates.length < limit + 1_000) continue
        first = dueFirst([...first, ...candidates], limit)
        candidates = []
        last = first.at(-1)?.dueAt.getTime() ?? last
      }
    return dueFirst([...first, ...candidates], limit).map(({ rule, mediaId, beganAt, dueAt }) => ({
      rule,
      mediaId,
      beganAt,
      dueAt,
    }))
  }

  stop(): void {
    this.#isStopped = true
    for (const ofMedia of this.#byMedia.values()) for (const open of ofMedia) clearTimeout(open.timer)
    this.#byMedia.clear()
    this.#size = 0
  }
}

/** Sorts in place, and returns the head. */
const dueFirst = (open: Open[], limit: number): readonly Open[] =>
  open.sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime()).slice(0, limit)
