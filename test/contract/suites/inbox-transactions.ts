import { WebhookError } from '../../../src/errors.ts'
import type { TransactionScope } from '../../../src/inbox/inbox.ts'
import { isPromise, type MaybePromise } from '../../../src/internal/maybe-promise.ts'
import { type Call, eventOf, until } from '../../support/inbox.ts'
import { type Check, codeOf, type InboxCheck, type TransactionSubject } from './inbox-check.ts'

interface TransactionCheck extends InboxCheck {
  /** Writes a text in a transaction of a handler. Resolves with `result of ‹text›`. */
  transact(call: Call, handler: string, text: string, options?: TransactOptions): Promise<string>
  /** Writes texts in a transaction of a handler that begins and ends transactions itself. */
  nest(call: Call, handler: string, steps: readonly Step[]): Promise<unknown>
  texts(): Promise<readonly string[]>
}

type Step = 'begin' | 'commit' | 'rollback' | { readonly write: string } | { readonly refused: string }

interface TransactOptions {
  readonly signal?: AbortSignal
  /** Runs in the transaction, after the write. */
  readonly afterwards?: () => void
}

const failures = [{ handler: 'other', message: 'Error: no' }]

/** Checks that a handler's writes and its completion are committed together. */
export function checkTransactions(checkInbox: Check): void {
  const check = (name: string, run: (check: TransactionCheck) => Promise<void>): void => {
    const runWith = (subject: InboxCheck) => {
      const transactions = subject.transactions as TransactionSubject
      return run({
        ...subject,
        texts: async () => [...(await transactions.texts())].sort(),
        transact: transactIn(transactions),
        nest: nestIn(transactions),
      })
    }
    checkInbox(name, runWith, 'transactions')
  }

  checkInbox('has transactions if and only if its subject says so', async (subject) => {
    const { inbox, calls, transactions, expect } = subject
    await inbox.accept(eventOf('one'))
    const { attempt } = await calls.next()
    expect(attempt.transaction !== undefined).toBe(transactions !== undefined)
  })

  check('commits what a transaction wrote, and resolves with its result', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    expect(await transact(call, 'writes', 'text')).toBe('result of text')
    expect(await texts()).toEqual(['text'])
  })

  check('commits nothing more of a handler that has completed', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    await transact(call, 'writes', 'text')
    expect(await codeOf(() => transact(call, 'writes', 'again'))).toBe('lease_lost')
    expect(await texts()).toEqual(['text'])
  })

  check('rolls a transaction back when its function throws, and lets the handler try again', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    const unlucky = new Error('unlucky')
    const thrown = await errorOf(transact(first, 'writes', 'first', { afterwards: () => fail(unlucky) }))
    expect(thrown).toBe(unlucky)
    expect(await texts()).toEqual([])
    first.finish({ status: 'retry', delayMs: 5, completed: [], failures: [] })
    const second = await calls.next()
    expect(second.attempt.completed).toEqual([])
    await transact(second, 'writes', 'second')
    expect(await texts()).toEqual(['second'])
  })

  check('keeps what one handler committed when a transaction of another one fails', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    await transact(call, 'first', 'of the first')
    await errorOf(transact(call, 'second', 'of the second', { afterwards: () => fail(new Error('no')) }))
    await transact(call, 'third', 'of the third')
    expect(await texts()).toEqual(['of the first', 'of the third'])
    call.finish({ status: 'retry', delayMs: 5, completed: ['first', 'third'], failures: [] })
    const next = await calls.next()
    expect(next.attempt.completed.toSorted()).toEqual(['first', 'third'])
  })

  check('records in the transaction that the handler has completed, whatever the attempt says', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    await transact(call, 'writes', 'text')
    // As if the process had crashed before it knew about the commit.
    call.finish({ status: 'dead', completed: [], failures })
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined && (await inbox.stats()).running === 0)
    expect((await inbox.deadLetters.get('one'))?.completed).toEqual(['writes'])
    expect(await texts()).toEqual(['text'])
  })

  check('keeps the record through attempts that follow, a dead letter and its replay', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    await transact(first, 'writes', 'text')
    await first.attempt.succeeded?.('other handler')
    first.finish({ status: 'retry', delayMs: 5, completed: ['writes', 'other handler'], failures: [] })
    const second = await calls.next()
    expect(second.attempt.completed.toSorted()).toEqual(['other handler', 'writes'])
    await transact(second, 'also writes', 'another text')
    const completed = [...second.attempt.completed, 'also writes']
    second.finish({ status: 'dead', completed, failures })
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined && (await inbox.stats()).running === 0)
    await inbox.deadLetters.replay('one')
    const replayed = await calls.next()
    expect(replayed.attempt.completed.toSorted()).toEqual(['also writes', 'other handler', 'writes'])
    await transact(replayed, 'last', 'text of the replay')
    expect(await texts()).toEqual(['another text', 'text', 'text of the replay'])
  })

  check('makes savepoints of the transactions that its function begins', async (subject) => {
    if (subject.transactions?.run === undefined) return
    const { inbox, calls, nest, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    const [kept, lost] = [{ write: 'kept' }, { write: 'lost' }]
    await nest(call, 'ends both', [...['begin', kept, 'begin', lost, 'rollback', 'commit'], kept] as Step[])
    await nest(call, 'undoes a commit', ['begin', 'begin', lost, 'commit', 'rollback', kept])
    expect(await texts()).toEqual(['kept', 'kept', 'kept'])
    expect(await codeOf(() => nest(call, 'leaves one open', ['begin', lost, 'commit', 'begin']))).toBe(
      'invalid_transaction',
    )
    expect(await texts()).toEqual(['kept', 'kept', 'kept'])
  })

  check('sends nothing of a text with a statement that it refuses', async (subject) => {
    if (subject.transactions?.run === undefined) return
    const { inbox, calls, nest, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const kept = { write: 'kept' }
    await nest(await calls.next(), 'writes', ['begin', kept, { refused: 'begin; commit and chain' }, 'commit', kept])
    expect(await texts()).toEqual(['kept', 'kept'])
  })

  check('refuses to end its transaction before its function returns', async (subject) => {
    if (subject.transactions?.run === undefined) return
    const { inbox, calls, nest, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    const lost = { write: 'lost' }
    const wrong: readonly (readonly Step[])[] = [
      [lost, 'commit'],
      [lost, 'rollback'],
      ['begin', lost, 'commit', 'commit'],
      ['begin', lost],
    ]
    for (const steps of wrong) expect(await codeOf(() => nest(call, 'writes', steps))).toBe('invalid_transaction')
    expect(await texts()).toEqual([])
    await transact(call, 'writes', 'text')
    expect(await texts()).toEqual(['text'])
  })

  checkInbox(
    'accepts events in transactions of the application if and only if its subject says so',
    async (subject) => {
      const { inbox, transactions, expect } = subject
      expect(inbox.acceptIn !== undefined).toBe(transactions?.own !== undefined)
    },
  )

  check('accepts an event of the application once it commits, and not if it rolls back', async (subject) => {
    const { inbox, calls, transactions, expect } = subject
    const { own } = transactions ?? {}
    if (own === undefined) return
    await inbox.ready?.()
    const acceptance = async (end: 'COMMIT' | 'ROLLBACK', key: string) => {
      const accepted: unknown[] = []
      await own(end, (client) => {
        accepted.push(inbox.acceptIn?.(client, eventOf(key)))
        return accepted[0]
      })
      return await accepted[0]
    }
    expect(await acceptance('ROLLBACK', 'rolled back')).toBe('accepted')
    expect(await acceptance('COMMIT', 'committed')).toBe('accepted')
    const call = await calls.next()
    expect(call.event.key).toBe('committed')
    expect(await acceptance('COMMIT', 'committed')).toBe('duplicate')
    call.finish()
    expect(await inbox.accept(eventOf('committed'))).toBe('duplicate')
    expect(await inbox.accept(eventOf('rolled back'))).toBe('accepted')
    expect((await calls.next()).event.key).toBe('rolled back')
  })

  check('refuses a client of another database', async (subject) => {
    const { inbox, transactions, expect } = subject
    if (transactions?.own === undefined) return
    expect(await codeOf(() => inbox.acceptIn?.({}, eventOf('one')))).toBe('invalid_option')
  })

  check('rolls a transaction back when its signal is aborted', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    const reason = new WebhookError('timeout', 'the handler did not finish in time')
    const [before, within] = [new AbortController(), new AbortController()]
    const transacted = errorOf(transact(first, 'writes', 'aborted at its start', { signal: before.signal }))
    before.abort(reason)
    expect(await transacted).toBe(reason)
    expect(await errorOf(transact(first, 'writes', 'aborted before', { signal: before.signal }))).toBe(reason)
    const afterwards = () => within.abort(reason)
    expect(
      await errorOf(transact(first, 'writes', 'aborted while it runs', { signal: within.signal, afterwards })),
    ).toBe(reason)
    first.finish({ status: 'retry', delayMs: 5, completed: [], failures: [] })
    const second = await calls.next()
    expect(second.attempt.completed).toEqual([])
    expect(await texts()).toEqual([])
  })

  check('does not mix up the transactions of two events', async (subject) => {
    const { inbox, calls, transact, texts, expect } = subject
    for (const key of ['one', 'two', 'three', 'four']) await inbox.accept(eventOf(key))
    const running = [await calls.next(), await calls.next(), await calls.next(), await calls.next()]
    const afterwards = () => fail(new Error('no'))
    const [first, second, third, fourth] = running as [Call, Call, Call, Call]
    await Promise.all([
      transact(first, 'writes', first.event.key),
      errorOf(transact(second, 'writes', second.event.key, { afterwards })),
      transact(third, 'writes', third.event.key),
      errorOf(transact(fourth, 'writes', fourth.event.key, { afterwards })),
    ])
    const committed = [first, third].map(({ event }) => event.key)
    expect(await texts()).toEqual(committed.toSorted())
    const completedOf = ({ event }: Call) => (committed.includes(event.key) ? ['writes'] : [])
    for (const call of running) call.finish({ status: 'retry', delayMs: 5, completed: completedOf(call), failures: [] })
    for (let i = 0; i < running.length; i++) {
      const call = await calls.next()
      expect(call.attempt.completed).toEqual(completedOf(call))
    }
  })
}

const fail = (error: Error): never => {
  throw error
}

const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error) => error,
  )

function transactIn({ write }: TransactionSubject): TransactionCheck['transact'] {
  return async ({ attempt }, handler, text, options = {}) => {
    const { signal = new AbortController().signal, afterwards = () => {} } = options
    const scope: TransactionScope = { handler, signal }
    if (attempt.transaction === undefined) throw new Error('the attempt has no transaction')
    return attempt.transaction(scope, (client): MaybePromise<string> => {
      const end = () => {
        afterwards()
        return `result of ${text}`
      }
      const written = write(client, text)
      // A synchronous transaction must not return a promise.
      if (!isPromise(written)) return end()
      return written.then(end).then((result) => (signal.aborted ? new Promise<string>(() => {}) : result))
    })
  }
}

/** Fails unless the call does, now or later. */
function refusal(call: () => MaybePromise<unknown>): MaybePromise<unknown> {
  const missing = () => fail(new Error('the SQL is not refused'))
  let result: MaybePromise<unknown>
  try {
    result = call()
  } catch {
    return
  }
  return isPromise(result) ? result.then(missing, () => {}) : missing()
}

function nestIn({ write, run }: TransactionSubject): TransactionCheck['nest'] {
  return async ({ attempt }, handler, steps) => {
    const scope: TransactionScope = { handler, signal: new AbortController().signal }
    return attempt.transaction?.(scope, (client) => {
      let last: MaybePromise<unknown>
      const apply = (step: Step) => {
        if (typeof step === 'string') return run?.(client, step)
        return 'write' in step ? write(client, step.write) : refusal(() => run?.(client, step.refused))
      }
      for (const step of steps) {
        const next = () => apply(step)
        last = isPromise(last) ? last.then(next) : next()
      }
      return isPromise(last) ? last : undefined
    })
  }
}
