import type { AnySender } from '../../events/sender.ts'
import type { EventOrder } from '../../inbox/inbox.ts'
import { ActivityRecorder } from '../../inbox/operations/activity.ts'
import { operationsHere, StoredOperations } from '../../inbox/operations/operations.ts'
import type { ActivityMinute, Operations, ReadableInbox } from '../../inbox/reading.ts'
import type { Logger } from '../../internal/logger.ts'
import { Notices } from '../../internal/page/notices.tsx'
import type { Receiver } from '../../receiver/options.ts'
import { BulkActions } from './acting/bulk-actions.ts'
import type { DashboardOptions } from './options.ts'
import { Causes } from './reading/causes.ts'
import { OverdueReports } from './reading/overdue-reports.ts'
import { Redaction } from './reading/redaction.ts'

/** What a dashboard is created from. */
export interface Shown {
  readonly inbox: ReadableInbox
  /** Shown in the heading, such as `memoryInbox`. */
  readonly name: string
  readonly logger: Logger
  /** The inbox hands its events to a queue and keeps no track of them. */
  readonly isQueue?: boolean
  /** Absent if unknown, like `sender`. */
  readonly order?: EventOrder
  readonly sender?: Pick<AnySender, 'name' | 'types'> | undefined
  /** Counts the activity of this process if the inbox records none. */
  readonly observe?: Receiver['observe']
}

export interface ActivitySource {
  /** When this process began to count. Absent if the inbox counts for all processes. */
  readonly ofThisProcessSince?: Date
  read(since: Date): readonly ActivityMinute[] | Promise<readonly ActivityMinute[]>
}

/** An inbox, with everything its pages share. */
export interface Subject extends Omit<Shown, 'observe'> {
  readonly activity: ActivitySource | undefined
  /** What operators did: in this process only, if the inbox stores no operations. */
  readonly operations: Operations
  readonly redaction: Redaction
  readonly causes: Causes
  readonly overdue: OverdueReports
  readonly bulkActions: BulkActions
  readonly notices: Notices
}

export function makeSubject({ observe, ...shown }: Shown, { redact }: DashboardOptions): Subject {
  const { inbox, logger } = shown
  const redaction = new Redaction(redact, logger)
  const causes = new Causes(inbox, redaction)
  const operations = inbox.operations ?? new StoredOperations(operationsHere())
  return {
    ...shown,
    activity: makeActivity(inbox, observe),
    operations,
    redaction,
    causes,
    overdue: new OverdueReports(inbox),
    bulkActions: new BulkActions({ inbox, redaction, operations }, () => causes.forget()),
    notices: new Notices(),
  }
}

function makeActivity(inbox: ReadableInbox, observe: Receiver['observe'] | undefined): ActivitySource | undefined {
  if (inbox.activity !== undefined) return { read: async (since) => (await inbox.activity?.(since)) ?? [] }
  if (observe === undefined) return undefined
  const recorder = new ActivityRecorder()
  observe(recorder)
  return { ofThisProcessSince: new Date(), read: (since) => recorder.since(since) }
}
