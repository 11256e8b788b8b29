import { setImmediate as nextTurn } from 'node:timers/promises'
import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createReceiver, type Receiver, unverified } from '../../../src/index.ts'
import { inboxContract } from '../../../src/testing/contract/inbox.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { checkUnreadable } from '../unreadable.suite.ts'
import { type ExampleInboxOptions, exampleInbox } from './example-inbox.ts'

let database: PGlite
let schemas = 0
beforeAll(async () => {
  database = await PGlite.create()
})
afterAll(() => database.close())

const freshInbox = (options: Partial<ExampleInboxOptions> = {}) =>
  exampleInbox({ database, schema: `inbox "${++schemas}"`, ...options })

inboxContract(() => ({ inbox: freshInbox() }), { test, expect })

checkUnreadable(async (options): Promise<Receiver> => {
  const receiver = createReceiver({ verify: unverified(), inbox: freshInbox(), logger: silent, ...options })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1 })))
  return receiver
})

/** The database, in which each statement of an inbox takes 50 ms longer. */
const slowed = (): PGlite => {
  const query = async (...statement: Parameters<PGlite['query']>) => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    return database.query(...statement)
  }
  return { exec: (text: string) => database.exec(text), query } as unknown as PGlite
}

const failures = [{ handler: 'b', message: 'Error: no' }]

describe('a second inbox over a database', () => {
  test('handles what the first one left, in order, without the handlers that had succeeded', async () => {
    const schema = 'left by a crash'
    const first = openInbox(exampleInbox({ database, schema }))
    // Until the end of this test it is as after a crash: its handlers never return.
    onTestFinished(async () => void (await first.inbox.close({ timeoutMs: 0 })))
    await first.inbox.accept(eventOf('handled'))
    ;(await first.calls.next()).finish()
    for (const key of ['due', 'not due']) {
      await first.inbox.accept(eventOf(key))
      ;(await first.calls.next()).finish({ status: 'retry', delayMs: 60_000, completed: ['a'], failures })
    }
    await first.inbox.accept(eventOf('running', 'media'))
    await (await first.calls.next()).attempt.succeeded?.('a')
    await first.inbox.accept(eventOf('waiting', 'media'))
    await database.exec(`UPDATE "${schema}".event SET due_at = now() - interval '1 s' WHERE key = '"due"'`)

    const { inbox, calls } = openInbox(exampleInbox({ database, schema }))
    const attempts = [await calls.next(), await calls.next()]
    expect(attempts.map(({ event, attempt }) => [event, attempt.number, attempt.completed])).toEqual([
      [eventOf('due').event, 2, ['a']],
      [eventOf('running', 'media').event, 1, ['a']],
    ])
    expect(await inbox.stats()).toMatchObject({ waiting: 1, running: 2, retrying: 1 })
    for (const key of ['handled', 'due', 'not due', 'running', 'waiting'])
      expect(await inbox.accept(eventOf(key))).toBe('duplicate')
    for (const call of attempts) call.finish()
    const next = await calls.next()
    expect([next.event.key, next.attempt.completed]).toEqual(['waiting', []])
    next.finish()
    const { unfinished } = await inbox.close()
    expect(unfinished.map(({ event, state }) => [event.key, state])).toEqual([['not due', 'retrying']])
  })

  test('handles what the first one reported as unfinished, also what was being written when it closed', async () => {
    const schema = 'left by closing'
    const first = openInbox(exampleInbox({ database: slowed(), schema, concurrency: 1 }))
    await first.inbox.accept(eventOf('failing'))
    const failing = await first.calls.next()
    const accepting = first.inbox.accept(eventOf('on its way'))
    await nextTurn()
    const closed = first.inbox.close({ timeoutMs: 60_000 })
    expect(await accepting).toBe('accepted')
    await nextTurn()
    failing.finish({ status: 'retry', delayMs: 0, completed: ['a'], failures })
    const { unfinished } = await closed
    expect(unfinished.map(({ event, state }) => [event.key, state])).toEqual([
      ['on its way', 'waiting'],
      ['failing', 'retrying'],
    ])

    const { inbox, calls } = openInbox(exampleInbox({ database, schema }))
    const attempts = [await calls.next(), await calls.next()]
    expect(attempts.map(({ event, attempt }) => [event.key, attempt.number, attempt.completed])).toEqual([
      ['failing', 2, ['a']],
      ['on its way', 1, []],
    ])
    for (const call of attempts) call.finish()
    expect(await inbox.close()).toEqual({ unfinished: [] })
  })
})

test('an inbox that is full says so', async () => {
  const { inbox, calls } = openInbox(freshInbox({ maxWaiting: 1 }))
  await inbox.accept(eventOf('running', 'media'))
  await calls.next()
  const answers = await Promise.all(['1', '2'].map((key) => inbox.accept(eventOf(key, 'media'))))
  expect(answers).toEqual(['accepted', 'overloaded'])
  await inbox.close({ timeoutMs: 0 })
})

test('a key is forgotten some time after its event was handled', async () => {
  const { inbox, calls } = openInbox(freshInbox({ ttlMs: 20 }))
  await inbox.accept(eventOf('one'))
  const call = await calls.next()
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  call.finish()
  await until(async () => (await inbox.accept(eventOf('one'))) === 'accepted')
  await inbox.close({ timeoutMs: 0 })
})

test('an event may have characters that Postgres has no text for', async () => {
  const { inbox, calls } = openInbox(freshInbox())
  const { event, receivedAt } = eventOf('a NUL \0 and half a pair \ud800')
  const odd = { event: { ...event, title: event.key, payload: { title: event.key } }, receivedAt }
  expect(await inbox.accept(odd)).toBe('accepted')
  const call = await calls.next()
  expect(call.event).toEqual(odd.event)
  call.finish({ status: 'dead', completed: [event.key], failures: [{ handler: event.key, message: event.key }] })
  await until(async () => (await inbox.stats()).deadLetters === 1)
  expect(await inbox.deadLetters.get(event.key)).toMatchObject({ event: odd.event, completed: [event.key] })
  await inbox.close()
})

test('an event whose end cannot be recorded is running until it can', async () => {
  const schema = 'without its table'
  const { inbox, calls } = openInbox(exampleInbox({ database, schema }))
  await inbox.accept(eventOf('one'))
  const call = await calls.next()
  await database.exec(`ALTER TABLE "${schema}".event RENAME TO away`)
  call.finish()
  await new Promise((resolve) => setTimeout(resolve, 50))
  await database.exec(`ALTER TABLE "${schema}".away RENAME TO event`)
  expect((await inbox.stats()).running).toBe(1)
  await until(async () => (await inbox.stats()).running === 0)
  await inbox.close()
})

test('an inbox over a database that cannot be used is never ready, accepts nothing, and closes', async () => {
  const closed = await PGlite.create()
  await closed.close()
  const { inbox } = openInbox(exampleInbox({ database: closed }))
  await expect(inbox.ready?.()).rejects.toMatchObject({ code: 'unavailable' })
  await expect(inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
  expect(await inbox.close()).toEqual({ unfinished: [] })
})
