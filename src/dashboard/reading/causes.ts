import type { DeadLetter, HandlerFailure, ReadableInbox } from '../../inbox/reading.ts'
import { eachDeadLetter } from './each.ts'
import { type FirstFailure, firstFailureOf } from './first-failure.ts'
import type { Redaction } from './redaction.ts'
import { templateOf } from './template.ts'

/** Maximum number of dead letters that are grouped: the newest. */
export const groupedLimit = 10_000

/** The part of a dead letter that a list shows. Payloads are not kept: ten thousand of them can be large. */
export interface DeadRow extends Pick<DeadLetter, 'key' | 'diedAt' | 'attempts' | 'failures'> {
  /** Absent for an unreadable delivery, like the next two. */
  readonly type: string | undefined
  readonly mediaId: string | undefined
  readonly title: string | undefined
  readonly firstFailure: FirstFailure
}

/**
 * Dead letters for which the same handlers failed with the same message, except for the parts that differ from event to
 * event.
 */
export interface Cause {
  readonly id: string
  /** `true` for deliveries that could not be parsed. */
  readonly isUnreadable: boolean
  /** Newest first. */
  readonly rows: DeadRow[]
}

/** The dead letters by cause. */
export interface CauseReport {
  /** The most frequent cause comes first. */
  readonly causes: readonly Cause[]
  /** `false` if there are more dead letters than the newest, which were grouped. */
  readonly isWhole: boolean
  /** The time at which the oldest of them became a dead letter. */
  readonly oldest: Date | undefined
}

/** Groups the dead letters of an inbox by cause, and reads them again only once they have changed. */
export class Causes {
  readonly #inbox: ReadableInbox
  readonly #redaction: Redaction
  #last: { readonly fingerprint: string; readonly report: CauseReport; readonly freshUntil: number } | undefined
  #reading: Promise<CauseReport> | undefined

  constructor(inbox: ReadableInbox, redaction: Redaction) {
    this.#inbox = inbox
    this.#redaction = redaction
  }

  /** @param count the number of all dead letters */
  async read(count: number): Promise<CauseReport> {
    // While thousands are being replayed, a report would be out of date immediately.
    if (this.#last !== undefined && performance.now() < this.#last.freshUntil) return this.#last.report
    const [newest] = count === 0 ? [] : await this.#inbox.deadLetters.list({ limit: 1 })
    const fingerprint = `${count} ${newest?.diedAt.getTime()} ${newest?.key}`
    if (this.#last?.fingerprint === fingerprint) return this.#last.report
    this.#reading ??= this.#group(fingerprint, count).finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /** Reads the dead letters again the next time, because some were just replayed or discarded. */
  forget(): void {
    this.#last = undefined
  }

  async #group(fingerprint: string, count: number): Promise<CauseReport> {
    const startedAt = performance.now()
    const seen = new Set<string>()
    const causes = new Map<string, Cause>()
    let oldest: Date | undefined
    let read = 0
    for await (const deadLetter of eachDeadLetter(this.#inbox, groupedLimit)) {
      read++
      if (seen.has(deadLetter.key)) continue
      seen.add(deadLetter.key)
      const cause = causeOf(deadLetter)
      const known = causes.get(cause.id) ?? cause
      causes.set(cause.id, known)
      known.rows.push(this.rowOf(deadLetter))
      oldest = deadLetter.diedAt
    }
    const sorted = [...causes.values()].sort((a, b) => b.rows.length - a.rows.length)
    const report = { causes: sorted, isWhole: read < groupedLimit || seen.size >= count, oldest }
    const now = performance.now()
    this.#last = { fingerprint, report, freshUntil: now + 5 * (now - startedAt) }
    return report
  }

  /** Shows a dead letter as a list does. */
  rowOf(deadLetter: DeadLetter): DeadRow {
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
      firstFailure: firstFailureOf(deadLetter),
    }
  }
}

/** The failures that all rows of a cause have. A message that differs from row to row is shown as a template. */
export function commonFailures({ rows }: Cause): readonly HandlerFailure[] {
  const [newest] = rows
  return (newest?.failures ?? []).map(({ handler, message }, index) => ({
    handler,
    message: rows.every(({ failures }) => failures[index]?.message === message) ? message : templateOf(message),
  }))
}

/** Finds the cause of a dead letter. */
export function causeOf(deadLetter: DeadLetter): Cause {
  const isUnreadable = deadLetter.unreadable !== undefined
  const same = failuresOf(deadLetter).map(({ handler, message }) => [handler, templateOf(message)])
  return { id: hashOf(JSON.stringify([isUnreadable, same])), isUnreadable, rows: [] }
}

/** The handlers that failed in the last attempt, or the reason why a delivery could not be parsed. */
export const failuresOf = ({ unreadable, failures }: DeadLetter): readonly HandlerFailure[] =>
  unreadable === undefined ? failures : [{ handler: 'none', message: unreadable.reason }]

/** Makes a short id of a text: cyrb53, which is good enough to tell a few hundred causes apart. */
function hashOf(text: string): string {
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
