import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { defineInbox } from '../../../src/inbox/define-inbox.ts'
import { ObjectInbox } from '../../../src/inbox/durable-object/inbox.ts'
import type { ExpectationChanges, Inbox } from '../../../src/inbox/inbox.ts'
import type { ObjectStorage } from '../../../src/internal/storage/durable-objects.ts'
import { type Calls, eventOf, openInbox, until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { ObjectsInNode } from './objects-in-node.ts'
import { mediaIn, shards } from './sharded-media.ts'
import { storageInNode } from './storage-in-node.ts'

const hourMs = 3_600_000

interface Opened {
  readonly inbox: Inbox
  readonly calls: Calls
  readonly changes: Map<string, ExpectationChanges>
}

/** Accepts an event that begins an expectation, and handles it. */
async function begin({ inbox, calls, changes }: Opened, key: string, mediaId: string, dueAt: Date) {
  const overdue = { ...eventOf(`overdue:rule:${key}`, mediaId), receivedAt: dueAt }
  const at = new Date(0)
  changes.set(key, { at, begins: [{ rule: 'rule', dueAt, overdue }], ends: [] })
  expect(await inbox.accept(eventOf(key, mediaId))).toBe('accepted')
  ;(await calls.next()).finish()
  await until(async () => (await inbox.events?.get(key))?.state === 'handled')
  return { rule: 'rule', mediaId, beganAt: at, dueAt }
}

/** Opens the inbox of an object, with room for ten events. */
function openedOn(storage: ObjectStorage) {
  const { logger, lines } = recordingLogger('warn')
  const limits = { concurrency: 1, maxWaiting: 10, maxDeadLetters: 10, ttlMs: 86_400_000 }
  let object: ObjectInbox | undefined
  const definition = defineInbox({
    name: 'an object',
    open(host) {
      object = new ObjectInbox(host, storage, limits)
      return object
    },
  })
  const opened = openInbox(definition, logger)
  onTestFinished(async () => {
    opened.calls.finishAll()
    await opened.inbox.close({ timeoutMs: 1_000 })
  })
  return { ...opened, object: object as unknown as ObjectInbox, lines }
}

/** Makes the storage of an object in which so many expectations are overdue. */
async function withOverdue(count: number): Promise<ObjectStorage> {
  const storage = storageInNode()
  const subject = openedOn(storage)
  const dueAt = new Date(Date.now() + hourMs)
  for (let index = 0; index < count; index++) await begin(subject, `key ${index}`, `media ${index}`, dueAt)
  await subject.inbox.close()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hourMs })
  return storage
}

afterEach(() => void vi.useRealTimers())

test('an object hands over what became overdue while it was evicted, and leaves half of the room for deliveries', async () => {
  const { inbox, calls, object } = openedOn(await withOverdue(20))
  await calls.next()
  expect(await inbox.stats()).toMatchObject({ waiting: 4, running: 1, expected: 15 })
  void object.alarm()
  await until(async () => (await inbox.stats()).waiting === 5)
  expect(await inbox.accept(eventOf('delivered'))).toBe('accepted')
  expect(await inbox.stats()).toMatchObject({ waiting: 6, running: 1, expected: 14 })
  calls.finishAll()
  // What finds no room is handed over 5 s later.
  await until(async () => {
    vi.setSystemTime(Date.now() + 5_000)
    await object.alarm()
    return (await inbox.stats()).expected === undefined
  })
})

test('an object whose storage fails logs that, and hands over what is overdue later', async () => {
  const storage = await withOverdue(1)
  const { exec } = storage.sql
  storage.sql.exec = (query, ...bindings) => {
    if (query.startsWith('DELETE FROM inbox_expectation WHERE hash')) throw new Error('storage')
    return exec(query, ...bindings)
  }
  const { calls, object, lines } = openedOn(storage)
  await until(async () => lines.length > 0)
  expect(lines).toMatchObject([
    { level: 'warn', message: 'the inbox could not hand over overdue expectations and will retry' },
  ])
  storage.sql.exec = exec
  vi.setSystemTime(Date.now() + 5_000)
  void object.alarm()
  expect((await calls.next()).event.key).toBe('overdue:rule:key 0')
})

test('the open expectations of all objects are listed and counted, the first deadline first', async () => {
  const objects = new ObjectsInNode(shards)
  const subject = openInbox(defineInbox({ name: 'in node', open: (host) => objects.open(host) }))
  onTestFinished(async () => void (await subject.inbox.close({ timeoutMs: 0 })))
  const media = mediaIn(2, 0, 3, 2, 1)
  const begun = []
  for (const [index, mediaId] of media.entries())
    begun.push(await begin(subject, `key ${index}`, mediaId, new Date(Date.now() + hourMs - index * 1_000)))
  expect(await subject.inbox.expected?.()).toEqual(begun.toReversed())
  expect(await subject.inbox.expected?.(2)).toEqual(begun.toReversed().slice(0, 2))
  expect(await subject.inbox.stats()).toMatchObject({ expected: 5 })
})
