import { newestOverdue } from '../../handlers/overdue.ts'
import type { InboxStats, ReadableInbox } from '../../inbox/reading.ts'

/** Time for which the newest overdue events are kept (ms). Each takes the history of its media item. */
const keptMs = 5_000

/** Reads the newest overdue events once for all open pages. */
export class OverdueReports {
  readonly #inbox: ReadableInbox
  #last:
    | { readonly state: string; readonly until: number; readonly report: ReturnType<typeof newestOverdue> }
    | undefined

  constructor(inbox: ReadableInbox) {
    this.#inbox = inbox
  }

  /** @param stats that of now: what fell due is no longer expected */
  read({ expected, deadLetters }: InboxStats): ReturnType<typeof newestOverdue> {
    const state = `${expected} ${deadLetters}`
    if (this.#last?.state !== state || performance.now() > this.#last.until) {
      const report = newestOverdue(this.#inbox)
      this.#last = { state, until: performance.now() + keptMs, report }
      report.catch(() => {
        this.#last = undefined
      })
    }
    return this.#last.report
  }
}
