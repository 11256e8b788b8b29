import { WebhookError } from '../../errors.ts'
import type { ActivityObserver, ExpectationChanges, Inbox, InboxDefinition } from '../../inbox/inbox.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { Calls } from './handling.ts'
import type { Assertion } from './runner.ts'

/** The use of the database of an inbox with transactions. */
export interface TransactionSubject {
  /** Writes a text to a table of the database, as part of a transaction of the inbox. */
  write(client: never, text: string): MaybePromise<unknown>
  /** Reads every text that was committed, in any order. */
  texts(): MaybePromise<readonly string[]>
}

/** The parts of the contract that an inbox can leave out. */
export interface InboxFeatures {
  /**
   * `true` when it keeps the order of the events of one media item.
   * @defaultValue true
   */
  readonly ordered?: boolean
  /**
   * `true` when it keeps events itself. Otherwise it hands them over to a queue. It then knows a duplicate only when
   * the queue delivers it, and has neither the number of waiting events nor dead letters.
   * @defaultValue true
   */
  readonly keepsEvents?: boolean
  /**
   * `true` when its handlers get transactions.
   * @defaultValue false
   */
  readonly transactions?: boolean
  /**
   * `true` when it has `events`, `history` and `deadLetters.replayAll`.
   * @defaultValue false
   */
  readonly reads?: boolean
  /**
   * `true` when it keeps expectations, so that `receiver.expect` works.
   * @defaultValue false
   */
  readonly expects?: boolean
  /**
   * `true` when it has `pauses`.
   * @defaultValue false
   */
  readonly pauses?: boolean
  /**
   * `true` when it can keep a strict order.
   * @defaultValue false
   */
  readonly strict?: boolean
  /**
   * `true` when attempts can wait for the limit of a handler.
   * @defaultValue false
   */
  readonly limits?: boolean
}

/** The subject of each test of the suite: an open inbox. */
export interface InboxCheck {
  readonly inbox: Inbox
  /** The definition that the inbox was opened with. */
  readonly definition: InboxDefinition
  readonly ordered: boolean
  readonly transactions: TransactionSubject | undefined
  readonly calls: Calls
  /** The effects of events on expectations, by event key, for the host of the inbox. */
  readonly changes: Map<string, ExpectationChanges>
  /** The observers that the inbox has given to the receiver. */
  readonly observers: readonly ActivityObserver[]
  expect(value: unknown): Assertion
}

/** Declares a test of the suite. It is skipped for an inbox without the feature that it needs. */
export type Check = (name: string, run: (check: InboxCheck) => Promise<void>, needs?: keyof InboxFeatures) => void

/** Returns the code of the WebhookError that a call throws or rejects with. */
export async function codeOf(call: () => unknown): Promise<string | undefined> {
  try {
    await call()
    return undefined
  } catch (error) {
    return error instanceof WebhookError ? error.code : undefined
  }
}
