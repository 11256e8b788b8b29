import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import { ObjectInbox } from '../../../src/inbox/durable-object/inbox.ts'
import type { Pauses } from '../../../src/inbox/reading.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { pausing } from '../pausing.suite.ts'
import { ObjectsInNode } from './objects-in-node.ts'
import { storageInNode } from './storage-in-node.ts'

const through = (objects: ObjectsInNode) =>
  defineInbox({ name: 'through requests', expects: true, open: (host) => objects.open(host) })

pausing(async (options) => {
  const inbox = through(new ObjectsInNode())
  const receiver = createReceiver({ verify: unverified(), logger: silent, ...options, inbox })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 200 })))
  return receiver
})

test('all objects are paused, and a pause is listed once', async () => {
  const { inbox, calls } = openInbox(through(new ObjectsInNode(3)))
  const pauses = inbox.pauses as Pauses
  expect(await pauses.pause({ by: 'ana' })).toBe(true)
  expect(await pauses.pause({ handler: 'a' })).toBe(true)
  expect(await pauses.list()).toMatchObject([{ by: 'ana' }, { handler: 'a' }])
  for (let index = 0; index < 10; index++) await inbox.accept(eventOf(`${index}`))
  await sleep(100)
  expect([calls.hasStarted, (await inbox.stats()).waiting]).toEqual([false, 10])
  expect(await pauses.resume()).toBe(true)
  for (let index = 0; index < 10; index++) (await calls.next()).finish()
  expect([await pauses.resume(), (await pauses.list()).length]).toEqual([false, 1])
  await inbox.close()
})

test('an object that is made again obeys the pause that it has stored', async () => {
  const storage = storageInNode()
  const limits = { concurrency: 16, maxWaiting: 100, maxDeadLetters: 100, ttlMs: 60_000 }
  const open = () => {
    const definition = { name: 'object', expects: true, open: (host: never) => new ObjectInbox(host, storage, limits) }
    return openInbox(defineInbox(definition))
  }
  const first = open()
  await first.inbox.pauses?.pause()
  await first.inbox.accept(eventOf('one'))
  // An eviction closes nothing.
  const { inbox, calls } = open()
  await sleep(100)
  expect([calls.hasStarted, (await inbox.stats()).waiting]).toEqual([false, 1])
  await inbox.pauses?.resume()
  ;(await calls.next()).finish()
  await until(async () => (await inbox.stats()).running === 0)
  await inbox.close()
})
