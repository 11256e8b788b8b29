import type { AnySender } from '../events/sender.ts'
import { hasFailed } from '../handlers/reports.ts'
import type { EventOrder } from '../inbox/inbox.ts'
import { ActivityRecorder } from '../inbox/operations/activity.ts'
import { operationsHere, StoredOperations } from '../inbox/operations/operations.ts'
import type { ActivityMinute, Operations, ReadableInbox } from '../inbox/reading.ts'
import type { Logger } from '../internal/logger.ts'
import { Notices } from '../page/notices.tsx'
import type { Receiver } from '../receiver/options.ts'
import { BulkActions } from './acting/bulk-actions.ts'
import type { DashboardOptions } from './options.ts'
import { Causes } from './reading/causes.ts'
import { OverdueReports } from './reading/overdue-reports.ts'
import { Redaction } from './reading/redaction.ts'

/** The inbox that a page shows, and where it comes from. */
export interface Shown {
  readonly inbox: ReadableInbox
  /** Named in the heading, such as `memoryInbox`. */
  readonly name: string
  readonly logger: Logger
  /** `true` if it hands its events to a queue, and knows nothing of them. */
  readonly isQueue?: boolean
  /** The order of the receiver. Absent if it is not known. */
  readonly order?: EventOrder
  /** Absent if it is not known. */
  readonly sender?: Pick<AnySender, 'name' | 'types'> | undefined
  /** The receiver's, to count what this process does. Absent for an inbox that was opened only to be read. */
  readonly observe?: Receiver['observe']
}

/** The source of the activity, minute by minute. */
export interface ActivitySource {
  /** Absent if the inbox has counted what all processes did. */
  readonly ofThisProcessSince?: Date
  read(since: Date): readonly ActivityMinute[] | Promise<readonly ActivityMinute[]>
}

/** An inbox with all that a page needs of it. */
export interface Subject extends Omit<Shown, 'observe'> {
  /** Absent if nothing counts. */
  readonly activity: ActivitySource | undefined
  /** What operators did. Only in this process, if the inbox stores nothing of it. */
  readonly operations: Operations
  readonly redaction: Redaction
  readonly causes: Causes
  readonly overdue: OverdueReports
  readonly bulkActions: BulkActions
  readonly notices: Notices
}

export function subjectOf({ observe, ...shown }: Shown, { redact }: DashboardOptions): Subject {
  const { inbox, logger } = shown
  const redaction = new Redaction(redact, logger)
  const causes = new Causes(inbox, redaction)
  const operations = inbox.operations ?? new StoredOperations(operationsHere())
  return {
    ...shown,
    activity: activityOf(inbox, observe),
    operations,
    redaction,
    causes,
    overdue: new OverdueReports(inbox),
    bulkActions: new BulkActions({ inbox, redaction, operations }, () => causes.forget()),
    notices: new Notices(),
  }
}

function activityOf(inbox: ReadableInbox, observe: Receiver['observe'] | undefined): ActivitySource | undefined {
  if (inbox.activity !== undefined) return { read: async (since) => (await inbox.activity?.(since)) ?? [] }
  if (observe === undefined) return undefined
  const recorder = new ActivityRecorder()
  observe({
    delivery: (report) => recorder.delivery(report),
    attempt: (report) => recorder.attempt(report),
    handling: ({ outcome, handler }) => {
      if (hasFailed(outcome)) recorder.failed(handler)
    },
  })
  return { ofThisProcessSince: new Date(), read: (since) => recorder.since(since) }
}
