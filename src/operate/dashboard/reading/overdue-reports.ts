import { newestOverdue } from '../../../handlers/overdue.ts'
import type { InboxStats, ReadableInbox } from '../../../inbox/reading.ts'

/** Cache lifetime (ms). Each overdue event costs a read of its media item's history. */
const keptMs = 5_000

export type OverdueReport = Awaited<ReturnType<typeof readReport>>

async function readReport(inbox: ReadableInbox) {
  const { found, hasMore } = await newestOverdue(inbox)
  return { found, hasMore, missing: found.filter(({ overdue }) => overdue.outcome !== 'came').length }
}

/** Caches the newest overdue events for all open pages. */
export class OverdueReports {
  readonly #inbox: ReadableInbox
  #last: { readonly fingerprint: string; readonly until: number; readonly report: Promise<OverdueReport> } | undefined

  constructor(inbox: ReadableInbox) {
    this.#inbox = inbox
  }

  read({ expected, deadLetters }: InboxStats): Promise<OverdueReport> {
    // An expectation that falls due leaves `expected`.
    const fingerprint = `${expected} ${deadLetters}`
    if (this.#last?.fingerprint !== fingerprint || performance.now() > this.#last.until) {
      const report = readReport(this.#inbox)
      this.#last = { fingerprint, until: performance.now() + keptMs, report }
      report.catch(() => {
        this.#last = undefined
      })
    }
    return this.#last.report
  }
}
