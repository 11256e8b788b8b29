import type { Inbox } from '../../inbox/inbox.ts'
import type { Calls } from './handling.ts'
import type { Expectation } from './runner.ts'

/** What each test of the suite is given: a started inbox. */
export interface InboxCheck {
  readonly inbox: Inbox
  readonly ordered: boolean
  readonly calls: Calls
  expect(value: unknown): Expectation
}

/** Declares a test of the suite. */
export type Check = (name: string, run: (check: InboxCheck) => Promise<void>) => void
