import type { Inbox } from '../../inbox/inbox.ts'
import type { Calls } from './handling.ts'
import type { Expectation } from './runner.ts'

/** The subject of each test of the suite: an open inbox. */
export interface InboxCheck {
  readonly inbox: Inbox
  readonly ordered: boolean
  readonly calls: Calls
  expect(value: unknown): Expectation
}

/** Declares a test of the suite. */
export type Check = (name: string, run: (check: InboxCheck) => Promise<void>) => void
