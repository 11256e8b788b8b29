import type { DeadLetter, HandlerFailure, ReadableInbox } from '../../../inbox/reading.ts'
import { eachDeadLetter } from './each.ts'
import { type FirstFailure, findFirstFailure } from './first-failure.ts'
import type { Redaction } from './redaction.ts'
import { makeTemplate } from './template.ts'

/** How many dead letters are grouped, newest first. */
export const groupedLimit = 10_000

/** A dead letter without its payload: 10,000 of them are held in memory. */
export interface DeadRow extends Pick<DeadLetter, 'key' | 'diedAt' | 'attempts' | 'failures'> {
  /** Absent for an unreadable delivery, like the next two. */
  readonly type: string | undefined
  readonly mediaId: string | undefined
  readonly title: string | undefined
  readonly firstFailure: FirstFailure
}

/** Dead letters with the same failing handlers and the same errors, ignoring ids, numbers and quoted parts in them. */
export interface Cause {
  readonly id: string
  /** True for deliveries that could not be parsed. */
  readonly isUnreadable: boolean
  /** Newest first. */
  readonly rows: DeadRow[]
}

export interface CauseReport {
  /** Most frequent first. */
  readonly causes: readonly Cause[]
  /** False if there are more than {@link groupedLimit} dead letters. */
  readonly isWhole: boolean
  /** When the oldest of them died. */
  readonly oldest: Date | undefined
}

interface Cache {
  last?: { readonly fingerprint: string; readonly report: CauseReport; readonly freshUntil: number }
  reading?: Promise<CauseReport> | undefined
}

/** Groups dead letters by cause. Caches the report until they change. */
export class Causes {
  readonly #inbox: ReadableInbox
  readonly #redaction: Redaction
  #cache: Cache = {}

  constructor(inbox: ReadableInbox, redaction: Redaction) {
    this.#inbox = inbox
    this.#redaction = redaction
  }

  /** @param count the number of all dead letters */
  async read(count: number): Promise<CauseReport> {
    const cache = this.#cache
    // While thousands are being replayed, every report is stale at once.
    if (cache.last !== undefined && performance.now() < cache.last.freshUntil) return cache.last.report
    const [newest] = count === 0 ? [] : await this.#inbox.deadLetters.list({ limit: 1 })
    const fingerprint = `${count} ${newest?.diedAt.getTime()} ${newest?.key}`
    if (cache.last?.fingerprint === fingerprint) return cache.last.report
    cache.reading ??= this.#group(cache, fingerprint, count).finally(() => {
      cache.reading = undefined
    })
    return cache.reading
  }

  /** Drops the cached report, and the one being read, after dead letters were replayed or discarded. */
  forget(): void {
    this.#cache = {}
  }

  async #group(cache: Cache, fingerprint: string, count: number): Promise<CauseReport> {
    const startedAt = performance.now()
    const seen = new Set<string>()
    const causes = new Map<string, Cause>()
    let oldest: Date | undefined
    let read = 0
    for await (const deadLetter of eachDeadLetter(this.#inbox, groupedLimit)) {
      read++
      if (seen.has(deadLetter.key)) continue
      seen.add(deadLetter.key)
      const cause = makeCause(deadLetter)
      const known = causes.get(cause.id) ?? cause
      causes.set(cause.id, known)
      known.rows.push(this.makeRow(deadLetter))
      oldest = deadLetter.diedAt
    }
    const sorted = [...causes.values()].sort((a, b) => b.rows.length - a.rows.length)
    const report = { causes: sorted, isWhole: read < groupedLimit || seen.size >= count, oldest }
    const now = performance.now()
    cache.last = { fingerprint, report, freshUntil: now + 5 * (now - startedAt) }
    return report
  }

  makeRow(deadLetter: DeadLetter): DeadRow {
    const { key, event, diedAt, attempts } = deadLetter
    const title = event && this.#redaction.title(event)
    return {
      key,
      type: event?.type,
      mediaId: event?.mediaId,
      title,
      diedAt,
      attempts,
      failures: failuresOf(deadLetter),
      firstFailure: findFirstFailure(deadLetter),
    }
  }
}

/** The failures that all rows of a cause share. A message that varies becomes its template. */
export function commonFailures({ rows }: Cause): readonly HandlerFailure[] {
  const [newest] = rows
  return (newest?.failures ?? []).map(({ handler, message }, index) => ({
    handler,
    message: rows.every(({ failures }) => failures[index]?.message === message) ? message : makeTemplate(message),
  }))
}

/** Returns the cause of a dead letter, without rows. */
export function makeCause(deadLetter: DeadLetter): Cause {
  const isUnreadable = deadLetter.unreadable !== undefined
  const same = failuresOf(deadLetter).map(({ handler, message }) => [handler, makeTemplate(message)])
  return { id: hashText(JSON.stringify([isUnreadable, same])), isUnreadable, rows: [] }
}

/** The failures of the last attempt, or why the delivery could not be parsed. */
export const failuresOf = ({ unreadable, failures }: DeadLetter): readonly HandlerFailure[] =>
  unreadable === undefined ? failures : [{ handler: 'none', message: unreadable.reason }]

/** Hashes with cyrb53 (53 bits): short ids for a few hundred causes. Not for security. */
function hashText(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    high = Math.imul(high ^ code, 2654435761)
    low = Math.imul(low ^ code, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return (4_294_967_296 * (2_097_151 & low) + (high >>> 0)).toString(36)
}
