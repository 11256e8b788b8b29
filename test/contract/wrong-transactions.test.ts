import { describe, expect, test } from 'vitest'
import type { AcceptedEvent, Attempt, Inbox, InboxDefinition } from '../../src/inbox/inbox.ts'
import { type SqliteDatabase, sqliteInbox } from '../../src/inbox/sqlite.ts'
import { temporaryFile } from '../inbox/sqlite/sqlite-tests.ts'
import { everyFeature } from './every-feature.ts'
import { failuresOf } from './failures-of.ts'
import { textsIn } from './sqlite-texts.ts'
import type { InboxSubject } from './suites/inbox.ts'
import { inboxContract } from './suites/inbox.ts'

// A wrong one is found after a wait of 30 s at worst.

type Transaction = NonNullable<Attempt['transaction']>
type Run = (client: SqliteDatabase) => unknown

/** The database of an inbox, and how the right inbox runs a transaction in it. */
interface Right {
  readonly database: SqliteDatabase
  readonly transaction: Transaction
  readonly attempt: Attempt
}

/** A change that makes attempts wrong. It is made anew for each inbox, so it can keep what it needs. */
type Wrong = () => (right: Right) => Partial<Attempt>

/** An inbox whose transactions are not those of the right one. */
const withTransaction = (wrong: (right: Right, ...call: Parameters<Transaction>) => unknown): Wrong => {
  return () => (right) => ({ transaction: (async (scope, run) => wrong(right, scope, run)) as Transaction })
}

/** Makes the subjects of a suite. */
const subjectOf =
  (wrong: Wrong, change: (inbox: Inbox) => Inbox = (inbox) => inbox) =>
  async (): Promise<InboxSubject> => {
    const { path, remove } = await temporaryFile()
    const transactions = textsIn(path)
    const { database } = transactions
    const definition = sqliteInbox({ path })
    const changed = wrong()
    const wrongAttempt = (attempt: Attempt): Attempt => {
      const transaction: Transaction = (scope, run) => (attempt.transaction as Transaction)(scope, run)
      return {
        number: attempt.number,
        completed: attempt.completed,
        signal: attempt.signal,
        aborted: false,
        succeeded: (handler) => attempt.succeeded?.(handler),
        isPaused: (handler) => attempt.isPaused?.(handler) ?? false,
        set run(run: Attempt['run']) {
          attempt.run = run
        },
        transaction,
        ...changed({ database, transaction, attempt }),
      }
    }
    const inbox: InboxDefinition = {
      ...definition,
      open: ({ handle, ...host }) =>
        change(definition.open({ ...host, handle: (accepted, attempt) => handle(accepted, wrongAttempt(attempt)) })),
    }
    return {
      inbox,
      transactions,
      close() {
        transactions.close()
        return remove()
      },
    }
  }

const nowhere: SqliteDatabase = {
  exec() {},
  prepare: () => ({ run: () => ({ changes: 1, lastInsertRowid: 1 }), get() {}, all: () => [] }),
  close() {},
}

/** An inbox in which the transactions of one turn succeed or fail together. */
const together: Wrong = () => {
  let batch: Run[] = []
  return ({ transaction }) => ({
    transaction: (async (scope, run) => {
      const mine = batch
      mine.push(run as Run)
      await new Promise(setImmediate)
      batch = []
      for (const each of mine) each(nowhere)
      return transaction(scope, run)
    }) as Transaction,
  })
}

/** An inbox that drops the BEGIN, COMMIT and ROLLBACK of a handler's function. */
const withoutControl = withTransaction(({ transaction }, scope, run) =>
  transaction(scope, ((client: SqliteDatabase) =>
    (run as Run)({ exec() {}, prepare: (sql) => client.prepare(sql), close() {} })) as never),
)

/** The fault, the inbox that has it, the check that catches it, and the message of that check. */
const wrongInboxes: [string, Wrong, string, string][] = [
  [
    'has no transactions, although its subject says so',
    () => () => ({ transaction: undefined }),
    'has transactions if and only if its subject says so',
    'expected false to be true',
  ],
  [
    'loses what a transaction wrote',
    withTransaction(({ transaction }, scope, run) => transaction(scope, () => (run as Run)(nowhere))),
    'commits what a transaction wrote, and resolves with its result',
    "expected [] to deeply equal [ 'text' ]",
  ],
  [
    'loses the result of the function',
    withTransaction(({ transaction }, scope, run) => transaction(scope, run).then(() => {})),
    'commits what a transaction wrote, and resolves with its result',
    "expected undefined to be 'result of text'",
  ],
  [
    'runs a handler again that has completed',
    withTransaction(({ transaction, database }, scope, run) =>
      transaction(scope, run).catch((error) => {
        if (error.code !== 'lease_lost') throw error
        return (run as Run)(database)
      }),
    ),
    'commits nothing more of a handler that has completed',
    "expected undefined to be 'lease_lost'",
  ],
  [
    'writes outside of the transaction',
    withTransaction(({ database }, _, run) => (run as Run)(database)),
    'rolls a transaction back when its function throws, and lets the handler try again',
    "expected [ 'first' ] to deeply equal []",
  ],
  [
    'takes a transaction that was rolled back for a success',
    withTransaction(({ transaction }, scope, run) => transaction(scope, run).catch(() => {})),
    'rolls a transaction back when its function throws, and lets the handler try again',
    'expected undefined to be Error: unlucky',
  ],
  [
    'rolls back the transactions of all handlers with one of them',
    withTransaction(({ transaction, database }, scope, run) =>
      transaction(scope, run).catch((error) => {
        database.exec('DELETE FROM written')
        throw error
      }),
    ),
    'keeps what one handler committed when a transaction of another one fails',
    "expected [ 'of the third' ] to deeply equal [ 'of the first', 'of the third' ]",
  ],
  [
    'commits without the record that the handler has completed',
    withTransaction(({ database }, { signal }, run) => {
      signal.throwIfAborted()
      database.exec('BEGIN')
      try {
        const result = (run as Run)(database)
        signal.throwIfAborted()
        database.exec('COMMIT')
        return result
      } catch (error) {
        database.exec('ROLLBACK')
        throw error
      }
    }),
    'records in the transaction that the handler has completed, whatever the attempt says',
    "expected [] to deeply equal [ 'writes' ]",
  ],
  [
    'forgets the record when the event is replayed',
    () =>
      ({ attempt }) =>
        attempt.number === 1 ? { completed: [] } : {},
    'keeps the record through attempts that follow, a dead letter and its replay',
    'expected [] to deeply equal [ Array(3) ]',
  ],
  [
    'keeps what a nested transaction has rolled back',
    withoutControl,
    'makes savepoints of the transactions that its function begins',
    "expected [ Array(5) ] to deeply equal [ 'kept', 'kept', 'kept' ]",
  ],
  [
    'lets its function end the transaction',
    withoutControl,
    'refuses to end its transaction before its function returns',
    "expected undefined to be 'invalid_transaction'",
  ],
  [
    'ignores the signal',
    withTransaction(({ transaction }, { handler }, run) =>
      transaction({ handler, signal: new AbortController().signal }, run),
    ),
    'rolls a transaction back when its signal is aborted',
    "expected undefined to be WebhookError: the handler did not finish … { code: '…' }",
  ],
  [
    'commits the transactions of different events together',
    together,
    'does not mix up the transactions of two events',
    'no',
  ],
]

describe('the contract suite of inboxes with transactions', () => {
  const names = new Set(wrongInboxes.map(([, , caughtBy]) => caughtBy))
  const right = subjectOf(() => () => ({}))

  test.concurrent.each([...names])('passes a correct inbox: it %s', async (name) => {
    expect(await failuresOf((runner) => inboxContract(right, runner, everyFeature), name)).toEqual({})
  })

  test('catches an inbox that has transactions, although its subject does not say so', async () => {
    const subject = async () => {
      const { transactions, ...rest } = await right()
      return rest
    }
    const caughtBy = 'has transactions if and only if its subject says so'
    const { transactions, late, ...features } = everyFeature
    expect(await failuresOf((runner) => inboxContract(subject, runner, features), caughtBy)).toEqual({
      [caughtBy]: expect.stringContaining('expected true to be false'),
    })
  })

  test.concurrent.each(wrongInboxes)('catches an inbox that %s', async (_, wrong, caughtBy, message) => {
    expect(await failuresOf((runner) => inboxContract(subjectOf(wrong), runner, everyFeature), caughtBy)).toEqual({
      [caughtBy]: expect.stringContaining(message),
    })
  })

  test.each<[string, (inbox: Inbox) => Inbox['acceptIn'], string, string]>([
    [
      'accepts an event of the application although it rolls back',
      (inbox) => (_: object, accepted: AcceptedEvent) => inbox.accept(accepted),
      'accepts an event of the application once it commits, and not if it rolls back',
      "expected 'rolled back' to be 'committed'",
    ],
    [
      'takes any client',
      () => () => 'accepted',
      'refuses a client of another database',
      "expected undefined to be 'invalid_option'",
    ],
    [
      'does not say that it accepts events of the application',
      () => undefined,
      'accepts events in transactions of the application if and only if its subject says so',
      'expected false to be true',
    ],
  ])('catches an inbox that %s', async (_, acceptIn, caughtBy, message) => {
    const subject = subjectOf(
      () => () => ({}),
      (inbox) => Object.assign(inbox, { acceptIn: acceptIn(inbox) }),
    )
    expect(await failuresOf((runner) => inboxContract(subject, runner, everyFeature), caughtBy)).toEqual({
      [caughtBy]: expect.stringContaining(message),
    })
  })
})
