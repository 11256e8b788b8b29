import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type InboxObjectOptions, inboxObject } from '../../../src/inbox/durable-object/cloudflare.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from './storage-in-node.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

/** An object whose handler does this, the keys that it remembers, and what it logs as errors. */
function objectWith(handler: () => Promise<void>, limits: InboxObjectOptions) {
  const storage = storageInNode()
  const errors: unknown[] = []
  const logger = { ...silent, error: (details: object, message: string) => void errors.push([details, message]) }
  const MediaInbox = inboxObject(
    (_env, inbox) => createReceiver({ verify: unverified(), logger, inbox, retry: { attempts: 1 } }).onAny(handler),
    limits,
  )
  const object = new MediaInbox({ storage }, {})
  const ask = async (step: string, input?: unknown) => {
    const request = new Request('https://object/', { method: 'POST', body: JSON.stringify({ step, input }) })
    return ((await (await object.fetch(request)).json()) as { result: unknown }).result
  }
  const accept = async (key: string) => {
    expect(await ask('accept', eventOf(key))).toBe('accepted')
    await vi.waitFor(async () => expect(await ask('stats')).toMatchObject({ waiting: 0, running: 0, retrying: 0 }))
  }
  const keys = () => storage.sql.exec('SELECT count(*) AS keys FROM inbox_event').toArray()[0]?.['keys']
  return { ask, accept, keys, errors }
}

test('an object drops its oldest dead letters beyond the limit, and logs each', async () => {
  const fails = async () => {
    throw new Error('as asked')
  }
  const { ask, accept, errors } = objectWith(fails, { maxDeadLetters: 2 })
  for (const key of ['one', 'two', 'three']) await accept(key)
  vi.setSystemTime(Date.now() + 10_000)
  await accept('four')
  expect(await ask('stats')).toMatchObject({ deadLetters: 2 })
  expect([await ask('get', 'two'), await ask('get', 'three')]).toEqual([undefined, expect.anything()])
  const dropped = 'a dead letter was dropped to make room for a newer one'
  expect(errors).toContainEqual([{ key: 'one' }, dropped])
  expect(errors).toContainEqual([{ key: 'two' }, dropped])
})

test('an object forgets expired keys when it has other work, every ten seconds', async () => {
  const { accept, keys } = objectWith(async () => {}, { ttlMs: 1_000 })
  await accept('one')
  vi.setSystemTime(Date.now() + 9_000)
  await accept('two')
  expect(keys()).toBe(2)
  vi.setSystemTime(Date.now() + 1_001)
  await accept('three')
  expect(keys()).toBe(1)
})

test('an object remembers a late replay from its end on', async () => {
  let fails = true
  const handler = async () => {
    if (fails) throw new Error('as asked')
  }
  const { ask, accept, keys } = objectWith(handler, { ttlMs: 60_000 })
  await accept('one')
  vi.setSystemTime(Date.now() + 61_000)
  fails = false
  expect(await ask('replay', 'one')).toBe(true)
  await vi.waitFor(async () => expect(await ask('event', 'one')).toMatchObject({ state: 'handled' }))
  vi.setSystemTime(Date.now() + 59_000)
  await accept('two')
  expect(await ask('accept', eventOf('one'))).toBe('duplicate')
  vi.setSystemTime(Date.now() + 11_000)
  await accept('three')
  expect(keys()).toBe(2)
})
