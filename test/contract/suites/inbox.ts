import type { Inbox, InboxDefinition } from '../../../src/inbox/inbox.ts'
import type { MaybePromise } from '../../../src/internal/maybe-promise.ts'
import { type Runner, skip } from '../../../src/testing/runner.ts'
import { openInbox } from '../../support/inbox.ts'
import { checkAccepting } from './inbox-accepting.ts'
import type { Check, InboxFeatures, TransactionSubject } from './inbox-check.ts'
import { checkClosing } from './inbox-closing.ts'
import { checkDeadLetters } from './inbox-dead-letters.ts'
import { checkExpecting } from './inbox-expecting.ts'
import { checkHandling } from './inbox-handling.ts'
import { checkLimits } from './inbox-limits.ts'
import { checkOpening } from './inbox-opening.ts'
import { checkLate, checkOrder } from './inbox-order.ts'
import { checkPausing } from './inbox-pausing.ts'
import { checkReading } from './inbox-reading.ts'
import { checkTransactions } from './inbox-transactions.ts'
import { checkUnreadable } from './inbox-unreadable.ts'

/** An inbox under test. */
export interface InboxSubject {
  /** A fresh definition, not opened yet, of an inbox that handles at least four events at a time. */
  readonly inbox: InboxDefinition
  /** Access to its database, if handlers get transactions. */
  readonly transactions?: TransactionSubject
  close?(): MaybePromise<void>
}

/**
 * Tests that an inbox keeps its contract.
 *
 * ```ts
 * import { expect, test } from 'vitest'
 * inboxContract(() => ({ inbox: myInbox() }), { test, expect })
 * ```
 * @param factory creates a fresh subject for each test
 * @param features optional parts that the inbox has; tests of the others are skipped
 */
export function inboxContract(
  factory: () => MaybePromise<InboxSubject>,
  { test, expect }: Runner,
  features: InboxFeatures = {},
): void {
  const has = withDefaults(features)
  const check: Check = (name, run, needs) => {
    if (needs !== undefined && !has[needs]) return skip({ test }, name, `its features do not have ${needs}: true`)
    test(name, async () => {
      const { inbox: definition, transactions, close } = await factory()
      const { inbox, calls, changes, observers } = openInbox(
        definition,
        undefined,
        needs === 'strict' ? 'strict' : 'loose',
        needs === 'handlesNow' ? 'handled' : 'accepted',
      )
      try {
        checkFeatures(has, inbox, definition, transactions)
        await run({ inbox, definition, ordered: has.ordered, transactions, calls, changes, observers, expect })
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
  checkReading(check)
  checkUnreadable(check)
  checkTransactions(check)
  checkExpecting(check)
  checkPausing(check)
  checkOrder(check)
  checkLate(check)
  checkLimits(check)
  checkClosing(check)
}

function withDefaults({
  ordered = true,
  keepsEvents = true,
  transactions = false,
  reads = false,
  keepsUnreadable = false,
  expects = false,
  pauses = false,
  strict = false,
  limits = false,
  late = false,
  handlesNow = false,
}: InboxFeatures): Required<InboxFeatures> {
  return {
    ordered,
    keepsEvents,
    transactions,
    reads,
    keepsUnreadable,
    expects,
    pauses,
    strict,
    limits,
    late,
    handlesNow,
  }
}

/** Throws if the suite's features are not those of the inbox. */
function checkFeatures(
  has: Required<InboxFeatures>,
  inbox: Inbox,
  definition: InboxDefinition,
  transactions: TransactionSubject | undefined,
): void {
  if ((transactions !== undefined) !== has.transactions)
    throw new Error('give the subject `transactions` and the suite `{ transactions: true }`, or neither')
  if ((inbox.events !== undefined) !== has.reads)
    throw new Error('give the suite `{ reads: true }` for an inbox with events')
  if ((inbox.keepUnreadable !== undefined) !== has.keepsUnreadable)
    throw new Error('give the suite `{ keepsUnreadable: true }` for an inbox that keeps unreadable deliveries')
  if ((definition.expects === true) !== has.expects)
    throw new Error('give the suite `{ expects: true }` for an inbox that keeps expectations')
  if ((inbox.pauses !== undefined) !== has.pauses)
    throw new Error('give the suite `{ pauses: true }` for an inbox that can be paused')
  if ((definition.ordersStrictly === true) !== has.strict)
    throw new Error('give the suite `{ strict: true }` for an inbox that can keep a strict order')
  if ((definition.limits === true) !== has.limits)
    throw new Error('give the suite `{ limits: true }` for an inbox whose attempts can wait for a limit')
  if ((definition.handlesNow === true) !== has.handlesNow)
    throw new Error("give the suite `{ handlesNow: true }` for an inbox that can be used with ack: 'handled'")
}
