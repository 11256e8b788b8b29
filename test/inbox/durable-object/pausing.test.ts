import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import { ObjectInbox } from '../../../src/inbox/durable-object/inbox.ts'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import type { Pauses } from '../../../src/inbox/reading.ts'
import type { ObjectStorage } from '../../../src/internal/storage/durable-objects.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { ObjectsInNode } from './objects-in-node.ts'
import { storageInNode } from './storage-in-node.ts'

test('all objects are paused, and a pause is listed once', async () => {
  const objects = new ObjectsInNode(3)
  const { inbox, calls } = openInbox(defineInbox({ name: 'three objects', open: (host) => objects.open(host) }))
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

const limits = { concurrency: 16, maxWaiting: 100, maxDeadLetters: 100, ttlMs: 60_000 }

test('an object is not woken while it is paused, except for what runs, and is woken for what is left once it is resumed', async () => {
  let at: number | undefined
  const storage: ObjectStorage = {
    ...storageInNode(),
    async setAlarm(time) {
      at = time
    },
    async deleteAlarm() {
      at = undefined
    },
  }
  let object: ObjectInbox | undefined
  const open = (host: InboxHost) => {
    object = new ObjectInbox(host, storage, limits)
    return object
  }
  const { inbox, calls } = openInbox(defineInbox({ name: 'object', expects: true, limits: true, open }))
  const ring = () => object?.alarm()
  await inbox.accept(eventOf('retried'))
  ;(await calls.next()).finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
  await until(async () => (await inbox.stats()).retrying === 1)
  await ring()
  expect(Number(at) - Date.now()).toBeGreaterThan(59_000)
  await inbox.accept(eventOf('running'))
  const call = await calls.next()
  await inbox.pauses?.pause()
  await inbox.accept(eventOf('waiting'))
  expect(Number(at) - Date.now()).toBeLessThanOrEqual(5_000)
  call.finish()
  await until(async () => (await inbox.stats()).running === 0)
  await ring()
  expect(at).toBe(undefined)
  await inbox.accept(eventOf('later'))
  expect([at, calls.hasStarted]).toEqual([undefined, false])
  await inbox.pauses?.resume()
  expect(Number(at) - Date.now()).toBeLessThanOrEqual(5_000)
  const resumed = [await calls.next(), await calls.next()]
  expect(resumed.map(({ event }) => event.key).toSorted()).toEqual(['later', 'waiting'])
  calls.finishAll()
  await until(async () => (await inbox.stats()).running === 0)
  await ring()
  expect(Number(at) - Date.now()).toBeGreaterThan(50_000)
  await inbox.close()
})

test('an object that is made again obeys the pause that it has stored', async () => {
  const storage = storageInNode()
  const open = () => {
    const definition = {
      name: 'object',
      expects: true,
      limits: true,
      open: (host: never) => new ObjectInbox(host, storage, limits),
    }
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
