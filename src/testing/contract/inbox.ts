import type { InboxDefinition } from '../../inbox/inbox.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { openInbox } from './handling.ts'
import { checkAccepting } from './inbox-accepting.ts'
import type { Check, TransactionSubject } from './inbox-check.ts'
import { checkClosing } from './inbox-closing.ts'
import { checkDeadLetters } from './inbox-dead-letters.ts'
import { checkHandling } from './inbox-handling.ts'
import { checkOpening } from './inbox-opening.ts'
import { checkTransactions } from './inbox-transactions.ts'
import type { Runner } from './runner.ts'

/** An inbox to test. */
export interface InboxSubject {
  /** A fresh definition, not opened yet, of an inbox that handles at least four events at a time. */
  readonly inbox: InboxDefinition
  /**
   * `true` when it keeps the order of the events of one media.
   * @defaultValue true
   */
  readonly ordered?: boolean
  /**
   * The use of its database, if its handlers get transactions.
   * @defaultValue none, so its attempts have no `transaction`
   */
  readonly transactions?: TransactionSubject
  /** Frees the resources of the subject, after the inbox was closed. */
  close?(): MaybePromise<void>
}

/**
 * Tests that an inbox keeps its contract.
 *
 * ```ts
 * import { expect, test } from 'vitest'
 * inboxContract(() => ({ inbox: myInbox() }), { test, expect })
 * ```
 * @param factory makes a fresh subject for each test
 */
export function inboxContract(factory: () => MaybePromise<InboxSubject>, { test, expect }: Runner): void {
  const check: Check = (name, run) => {
    test(name, async () => {
      const { inbox: definition, ordered = true, transactions, close } = await factory()
      const { inbox, calls } = openInbox(definition)
      try {
        await run({ inbox, definition, ordered, transactions, calls, expect })
      } finally {
        calls.finishAll()
        await inbox.close({ timeoutMs: 100 })
        await close?.()
      }
    })
  }
  checkOpening(check)
  checkAccepting(check)
  checkHandling(check)
  checkDeadLetters(check)
  checkTransactions(check)
  checkClosing(check)
}
