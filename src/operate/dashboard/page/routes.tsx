import { showBulkAction } from './bulk-action.tsx'
import { showNumbers } from './charts.tsx'
import { showDeadLetters } from './dead-letters.tsx'
import { showEvent } from './event.tsx'
import { showEvents } from './events.tsx'
import { showExpected } from './expected.tsx'
import { exportDeadLetters, exportEvents } from './export.ts'
import { find } from './find.ts'
import { showMedia } from './media.tsx'
import { showOperations } from './operations.tsx'
import { showOverview } from './overview.tsx'
import type { Answer, PageState } from './page-state.ts'

type Shows = (page: PageState) => Promise<Answer | Response>

export const getRoutes: ReadonlyMap<string, Shows> = new Map<string, Shows>([
  ['', showOverview],
  ['events', showEvents],
  ['event', showEvent],
  ['media', showMedia],
  ['dead-letters', showDeadLetters],
  ['expected', showExpected],
  ['operations', showOperations],
  ['bulk-action', showBulkAction],
  ['numbers', showNumbers],
  ['find', find],
  ['dead-letters.jsonl', exportDeadLetters],
  ['events.jsonl', exportEvents],
])
