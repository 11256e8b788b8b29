import type { InspectedInbox } from '../../../inbox/reading.ts'
import { ageText } from '../../../internal/duration.ts'
import { table } from '../../shared/text.ts'
import type { InboxAction } from './action.ts'
import { pauseText } from './pauses.ts'

export interface InboxCounts {
  readonly waiting: number
  /** Absent for a file: only the process that handles its events knows. */
  readonly running?: number
  readonly retrying: number
  readonly deadLetters: number
  readonly expected?: number | undefined
  readonly oldestWaitingAt?: Date
  readonly oldestWaitingMs?: number
}

export async function readCounts({ stats, events }: InspectedInbox): Promise<InboxCounts> {
  const { running, oldestWaitingAt: at, ...counts } = await stats()
  return {
    ...counts,
    ...(events.states.includes('running') && { running }),
    ...(at !== undefined && { oldestWaitingAt: at, oldestWaitingMs: Math.max(0, Date.now() - at.getTime()) }),
  }
}

export const stats: InboxAction = {
  help: ['stats', 'counts events by state, and shows how long the oldest has waited and what is paused'],
  flags: [],
  async run({ inbox, values, screen }) {
    const counts = await readCounts(inbox)
    const pauses = await inbox.pauses.list()
    const { waiting, running, retrying, deadLetters, expected, oldestWaitingMs } = counts
    const rows = Object.entries({
      waiting,
      ...(running !== undefined && { running }),
      retrying,
      'dead letters': deadLetters,
      ...(expected !== undefined && { expected }),
      ...(oldestWaitingMs !== undefined && { 'oldest waits': ageText(oldestWaitingMs) }),
    })
    const paused = pauses.map((pause) => ['paused', pauseText(pause)])
    if (values.json) screen.json({ ...counts, ...(pauses.length > 0 && { pauses }) })
    else screen.print(table([...rows.map(([label, value]) => [label, `${value}`]), ...paused]))
    return 0
  },
}
