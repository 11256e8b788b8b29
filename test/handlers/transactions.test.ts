import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { type HandlerContext, memoryInbox, type ReceiverOptions, type Transactional } from '../../src/index.ts'
import { deliver, samplePayload, withTransactions } from '../../src/testing/index.ts'
import { signalled } from '../support/signalled.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'
import { receiverWithReports } from './reported-receiver.ts'

/** A database of one table, which shows the writes of a transaction once it is committed. */
function makeDatabase() {
  const rows: string[] = []
  const log: string[] = []
  async function begin(run: (client: { insert(row: string): void }) => Promise<void>): Promise<void> {
    const written: string[] = []
    try {
      await run({ insert: (row) => void written.push(row) })
    } catch (error) {
      // A rollback takes as long as a round trip.
      await pause(5)
      log.push('rolled back')
      throw error
    }
    rows.push(...written)
    log.push('committed')
  }
  return { rows, log, begin }
}

type Client = { insert(row: string): void }
type Context = HandlerContext & Transactional<Client>

function subject(options: Partial<ReceiverOptions<Transactional<Client>>> = {}) {
  const database = makeDatabase()
  const inbox = withTransactions<Client>(memoryInbox(), database.begin)
  const { receiver, ...rest } = receiverWithReports({ ...options, inbox })
  const told: { readonly error: unknown; readonly willRetry: boolean }[] = []
  receiver.onError((error, { willRetry }) => void told.push({ error, willRetry }))
  const on = (name: string, handler: (context: Context) => unknown) =>
    void receiver.onAny((_event, context) => handler(context), { name })
  return { ...database, ...rest, receiver, told, on }
}

const misused = (message: string) => ({ code: 'invalid_transaction', message: `context.transaction: ${message}` })
const once = misused('call it once, before the handler ends')

describe('context.transaction', () => {
  test('commits what it wrote, and resolves with the result of its function', async () => {
    const { on, handled, outcomes, rows } = subject()
    const results: unknown[] = []
    on('h', async ({ transaction }) => {
      results.push(
        await transaction((client) => {
          client.insert('row')
          return 7
        }),
      )
    })
    await handled()
    expect([results, rows, outcomes()]).toEqual([[7], ['row'], ['h 1 handled']])
  })

  test('takes an asynchronous function', async () => {
    const { on, handled, rows } = subject()
    on('h', ({ transaction }) => transaction((client) => pause(1).then(() => client.insert('row'))))
    await handled()
    expect(rows).toEqual(['row'])
  })

  test('fails the handler with the error of its function, and runs again in the next attempt', async () => {
    const { on, handled, outcomes, rows, log } = subject()
    on('h', async ({ transaction, attempt }) => {
      await transaction((client) => {
        client.insert(`row of attempt ${attempt}`)
        if (attempt === 1) throw new Error('unlucky')
      })
    })
    await handled()
    expect(outcomes()).toEqual(['h 1 retried', 'h 2 handled'])
    expect([rows, log]).toEqual([['row of attempt 2'], ['rolled back', 'committed']])
  })

  test('does not fail a handler that catches the error of its function', async () => {
    const { on, handled, outcomes, rows } = subject()
    on('h', ({ transaction }) => transaction(() => Promise.reject(new Error('it is there already'))).catch(() => {}))
    await handled()
    expect([outcomes(), rows]).toEqual([['h 1 handled'], []])
  })

  test('fails the handler with an inbox that has no database', async () => {
    const { receiver, handled, reports } = receiverWithReports({ retry: { attempts: 1 } })
    receiver.onAny((_event, context) => (context as Context).transaction(() => {}))
    await handled()
    expect(reports).toMatchObject([{ outcome: 'dead-lettered', error: misused('the inbox has no database') }])
  })

  test('fails the handler that calls it again after it was rolled back', async () => {
    const { on, handled, reports, rows } = subject({ retry: { attempts: 1 } })
    on('h', async ({ transaction }) => {
      await transaction(() => Promise.reject(new Error('unlucky'))).catch(() => {})
      await transaction((client) => client.insert('row'))
    })
    await handled()
    expect([reports, rows]).toMatchObject([[{ outcome: 'dead-lettered', error: once }], []])
  })

  test('throws when the handler has ended', async () => {
    const { on, handled, rows } = subject()
    let transaction: Context['transaction'] | undefined
    on('h', (context) => {
      transaction = context.transaction
    })
    await handled()
    expect(() => transaction?.((client) => client.insert('row'))).toThrow(expect.objectContaining(once))
    expect(rows).toEqual([])
  })
})

describe('a handler whose transaction is committed', () => {
  test.each([
    ['throws', () => Promise.reject(new Error('too late'))],
    ['takes too long', () => new Promise(() => {})],
    ['calls it again', ({ transaction }: Context) => transaction(() => {})],
  ])('does not run again when it %s afterwards, and its error is reported', async (_, after) => {
    const { on, handled, outcomes, reports, told, rows, receiver } = subject({ handlerTimeoutMs: 20 })
    on('h', async (context) => {
      await context.transaction((client) => client.insert('row'))
      await after(context)
    })
    await handled()
    expect([outcomes(), rows]).toEqual([['h 1 handled'], ['row']])
    expect(reports[0]?.error).toBeInstanceOf(Error)
    expect(told).toEqual([{ error: reports[0]?.error, willRetry: false }])
    expect(await receiver.inbox.deadLetters.list()).toEqual([])
  })

  test('does not run again when another handler of the event fails', async () => {
    const { on, handled, outcomes, rows } = subject()
    on('writes', ({ transaction }) => transaction((client) => client.insert('row')))
    on('fails once', ({ attempt }) => attempt === 1 && Promise.reject(new Error('unlucky')))
    await handled()
    expect(outcomes()).toEqual(['writes 1 handled', 'fails once 1 retried', 'fails once 2 handled'])
    expect(rows).toEqual(['row'])
  })

  test('is logged as an error when it fails afterwards', async () => {
    const lines: string[] = []
    const error = (_: object, line: string) => void lines.push(line)
    const { on, handled } = subject({ logger: { ...silent, error } })
    on('h', async ({ transaction }) => {
      await transaction(() => {})
      throw new Error('too late')
    })
    await handled()
    expect(lines).toEqual(['handler h failed after its transaction in attempt 1'])
  })
})

describe('a transaction that fails', () => {
  test('does not affect the other handlers of the event', async () => {
    const { on, handled, outcomes, rows } = subject({ retry: { attempts: 1 } })
    on('before', ({ transaction }) => transaction((client) => client.insert('before')))
    on('fails', ({ transaction }) => transaction(() => Promise.reject(new Error('no'))))
    on('after', ({ transaction }) => transaction((client) => client.insert('after')))
    await handled()
    expect(outcomes()).toEqual(['before 1 handled', 'fails 1 dead-lettered', 'after 1 handled'])
    expect(rows).toEqual(['before', 'after'])
  })
})

describe('a handler that ends while its transaction is open', () => {
  test('has ended once the transaction is committed', async () => {
    const { on, handled, outcomes, rows } = subject()
    on('h', ({ transaction }) => {
      void transaction((client) => pause(10).then(() => client.insert('row')))
    })
    on('next', () => void rows.push('next'))
    await handled()
    expect([rows, outcomes()]).toEqual([
      ['row', 'next'],
      ['h 1 handled', 'next 1 handled'],
    ])
  })

  test('fails when the transaction does, although it is not awaited', async () => {
    const { on, handled, reports } = subject({ retry: { attempts: 1 } })
    on('h', ({ transaction }) => {
      void transaction(() => pause(5).then(() => Promise.reject(new Error('no'))))
    })
    await handled()
    expect(reports).toMatchObject([{ outcome: 'dead-lettered', error: { message: 'no' } }])
  })

  test('fails when the transaction has failed before it ends, although it is not awaited', async () => {
    const { on, handled, reports } = subject({ retry: { attempts: 1 } })
    on('h', async ({ transaction }) => {
      void transaction(() => Promise.reject(new Error('no')))
      await pause(10)
    })
    await handled()
    expect(reports).toMatchObject([{ outcome: 'dead-lettered', error: { message: 'no' } }])
  })

  test.each([
    ['awaits', async (transaction: Promise<unknown>) => void (await transaction.then(undefined, () => {}))],
    ['catches', (transaction: Promise<unknown>) => transaction.catch(() => {})],
    [
      'tries',
      async (transaction: Promise<unknown>) => {
        try {
          await transaction
        } catch {}
      },
    ],
  ])('succeeds although its transaction fails, which it %s', async (_, hear) => {
    const { on, handled, outcomes } = subject({ retry: { attempts: 1 } })
    on('h', async ({ transaction }) => {
      await hear(transaction(() => Promise.reject(new Error('no'))))
      await pause(5)
    })
    await handled()
    expect(outcomes()).toEqual(['h 1 handled'])
  })

  test.each([
    ['fails', 'handler_failed', new Error('no'), () => Promise.reject(new Error('no'))],
    ['rejects with nothing', 'handler_failed', undefined, () => Promise.reject()],
    ['takes too long', 'timeout', expect.objectContaining({ code: 'timeout' }), () => new Promise(() => {})],
  ])('aborts its signal when it %s, and ends once the transaction is rolled back', async (_, code, error, end) => {
    const { on, handled, outcomes, reports, rows, log } = subject({ retry: { attempts: 1 }, handlerTimeoutMs: 20 })
    let signal: AbortSignal | undefined
    on('h', (context) => {
      signal = context.signal
      void context.transaction(async (client) => {
        client.insert('row')
        await new Promise(() => {})
      })
      return end()
    })
    on('next', () => log.push('next'))
    await handled()
    expect(signal?.reason).toMatchObject({ name: 'WebhookError', code })
    expect(reports[0]?.error).toEqual(error)
    expect([outcomes()[0], rows, log]).toEqual(['h 1 dead-lettered', [], ['rolled back', 'next']])
  })

  test('fails, and rolls back, when its time is up after it has returned', async () => {
    const { on, handled, reports, rows, log } = subject({ retry: { attempts: 1 }, handlerTimeoutMs: 20 })
    on('h', ({ transaction }) => {
      void transaction(async (client) => {
        client.insert('row')
        await new Promise(() => {})
      })
    })
    await handled()
    expect(reports).toMatchObject([{ outcome: 'dead-lettered', error: { code: 'timeout' } }])
    expect([rows, log]).toEqual([[], ['rolled back']])
  })

  test('rolls back when it rejects without a value and its signal was not read', async () => {
    const { on, handled, rows, log } = subject({ retry: { attempts: 1 } })
    on('h', ({ transaction }) => {
      void transaction((client) => pause(5).then(() => client.insert('row')))
      return Promise.reject()
    })
    await handled()
    expect([rows, log]).toEqual([[], ['rolled back']])
  })

  test('is handled when it fails while the transaction is being committed', async () => {
    const { promise: committing, resolve: commit } = signalled()
    const { promise: failed, resolve: fail } = signalled()
    const inbox = withTransactions<undefined>(memoryInbox(), async (run) => {
      await run(undefined)
      commit()
      await failed
    })
    const { receiver, handled, outcomes } = receiverWithReports({ inbox })
    receiver.onAny(
      async (_event, context) => {
        void context.transaction(() => {})
        await committing
        setTimeout(fail, 5)
        throw new Error('too late')
      },
      { name: 'h' },
    )
    await handled()
    expect(outcomes()).toEqual(['h 1 handled'])
  })

  test('rolls back when the inbox closes before it ends', async () => {
    const { on, receiver, log, outcomes } = subject()
    const { promise: running, resolve: run } = signalled()
    on('h', ({ transaction }) =>
      transaction(() => {
        run()
        return new Promise(() => {})
      }),
    )
    await deliver(receiver, samplePayload('encoding.finished'))
    await running
    expect((await receiver.close({ timeoutMs: 5 })).unfinished).toHaveLength(1)
    await vi.waitFor(() => expect(outcomes()).toEqual(['h 1 stopped']))
    expect(log).toEqual(['rolled back'])
  })
})

describe('withTransactions', () => {
  test('opens the inbox as it is: its name, whether it handles immediately, and one receiver', () => {
    const inbox = withTransactions(memoryInbox(), (run) => run(undefined))
    expect(inbox).toMatchObject({ name: 'memoryInbox', handlesNow: true })
    receiverWithReports({ inbox })
    expect(() => receiverWithReports({ inbox })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  })

  test('works with handlers that run before the acknowledgement', async () => {
    const rows: string[] = []
    const inbox = withTransactions<string[]>(memoryInbox(), (run) => run(rows))
    const { receiver, handled } = receiverWithReports({ inbox, ack: 'handled' })
    receiver.onAny((_event, context) => context.transaction((table) => table.push('row')))
    expect(await handled()).toMatchObject({ outcome: 'handled' })
    expect(rows).toEqual(['row'])
  })

  test.each([
    ['no inbox', () => withTransactions(untyped(undefined), (run) => run(undefined))],
    ['a database instead of a function', () => withTransactions(memoryInbox(), untyped({}))],
  ])('throws invalid_option for %s', (_, make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  })

  test('fails the handler when the function has not run the transaction', async () => {
    const inbox = withTransactions(memoryInbox(), async () => {})
    const { receiver, handled, reports } = receiverWithReports({ inbox, retry: { attempts: 1 } })
    receiver.onAny((_event, context) => context.transaction(() => 1))
    await handled()
    expect(reports).toMatchObject([{ outcome: 'dead-lettered', error: { message: /did not run/ } }])
  })
})
