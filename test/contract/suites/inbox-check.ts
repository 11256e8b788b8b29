import { WebhookError } from '../../../src/errors.ts'
import type { ActivityObserver, ExpectationChanges, Inbox, InboxDefinition } from '../../../src/inbox/inbox.ts'
import type { MaybePromise } from '../../../src/internal/maybe-promise.ts'
import type { Assertion } from '../../../src/testing/runner.ts'
import type { Calls } from '../../support/inbox.ts'

/** Gives a test access to the database of an inbox with transactions. */
export interface TransactionSubject {
  /** Writes a text in a transaction of the inbox. */
  write(client: never, text: string): MaybePromise<unknown>
  /** Runs SQL in a transaction of the inbox. Absent if the database has no SQL for transactions. */
  run?(client: never, sql: string): MaybePromise<unknown>
  /** Runs a function in a transaction of the application, with its client, and ends it. Absent if it can have none. */
  own?(end: 'COMMIT' | 'ROLLBACK', run: (client: object) => MaybePromise<unknown>): MaybePromise<unknown>
  /** Reads all committed texts, in any order. */
  texts(): MaybePromise<readonly string[]>
}

/** Optional parts of the contract. */
export interface InboxFeatures {
  /**
   * `true` if it keeps the order of events within a media item.
   * @defaultValue true
   */
  readonly ordered?: boolean
  /**
   * `true` if it keeps events itself. `false` if it hands them to a queue: it then notices a duplicate only when the
   * queue delivers it, and has neither a waiting count nor dead letters.
   * @defaultValue true
   */
  readonly keepsEvents?: boolean
  /**
   * `true` if its handlers get transactions.
   * @defaultValue false
   */
  readonly transactions?: boolean
  /**
   * `true` if it has `events`, `history` and `deadLetters.replayAll`.
   * @defaultValue false
   */
  readonly reads?: boolean
  /**
   * `true` if it has `keepUnreadable`, `reads` and `expects`.
   * @defaultValue false
   */
  readonly keepsUnreadable?: boolean
  /**
   * `true` if it keeps expectations, for `receiver.expect`.
   * @defaultValue false
   */
  readonly expects?: boolean
  /**
   * `true` if it has `pauses`.
   * @defaultValue false
   */
  readonly pauses?: boolean
  /**
   * `true` if it can keep a strict order.
   * @defaultValue false
   */
  readonly strict?: boolean
  /**
   * `true` if attempts can wait for a handler's limit.
   * @defaultValue false
   */
  readonly limits?: boolean
  /**
   * `true` if it tells that an event is late.
   * @defaultValue false
   */
  readonly late?: boolean
  /**
   * `true` if it has `handleNow`, for `ack: 'handled'`.
   * @defaultValue false
   */
  readonly handlesNow?: boolean
}

export interface InboxCheck {
  readonly inbox: Inbox
  readonly definition: InboxDefinition
  readonly ordered: boolean
  readonly transactions: TransactionSubject | undefined
  readonly calls: Calls
  /** Changes to expectations by event key, for the inbox's host. */
  readonly changes: Map<string, ExpectationChanges>
  readonly observers: readonly ActivityObserver[]
  expect(value: unknown): Assertion
}

/** Declares a test. Skipped if the inbox lacks the feature it needs. */
export type Check = (name: string, run: (check: InboxCheck) => Promise<void>, needs?: keyof InboxFeatures) => void

/** Texts that an encoding may take for their neighbours, or for its own syntax. */
export const texts: readonly string[] = [
  '\ud800',
  '\ud801',
  '\ufffd',
  'a\0b',
  'a\0c',
  '"',
  '","',
  '{a,"b"}',
  `' " \\' \\`,
  '$1 $20',
  'x'.repeat(100_000),
]

/** Returns the code of the WebhookError that a call throws or rejects with, if any. */
export async function codeOf(call: () => unknown): Promise<string | undefined> {
  try {
    await call()
    return undefined
  } catch (error) {
    return error instanceof WebhookError ? error.code : undefined
  }
}
