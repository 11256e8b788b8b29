import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, PermanentFailure, RetryAfter, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { crashed, freshPath } from './sqlite-tests.ts'

test('a damaged event that waits for its retry becomes a dead letter then, and what is behind it is handled', async () => {
  const path = await freshPath()
  const events: string[] = []
  const open = () =>
    createReceiver({ verify: unverified(), inbox: sqliteInbox({ path }), order: 'strict', logger: silent }).onAny(
      ({ mediaId }) => {
        if (events.length === 0) throw new RetryAfter('1 s')
        events.push(mediaId)
      },
    )
  const first = open()
  await deliver(first, samplePayload('encoding.finished', { media_id: 'media' }))
  await until(async () => (await first.inbox.stats()).retrying === 1)
  await first.close({ timeoutMs: 0 })
  const database = openDatabase(path)
  database.exec("UPDATE inbox_event SET event = '{'")
  database.close()
  events.push('damaged')

  const second = open()
  await deliver(second, samplePayload('encoding.started', { media_id: 'media' }))
  await until(async () => events.length === 2)
  expect(events).toEqual(['damaged', 'media'])
  await until(async () => (await second.inbox.stats()).deadLetters === 1)
  await second.close()
})

test('a strict order holds after a crash what was behind a retry, and what comes then', async () => {
  const path = await freshPath()
  const events: string[] = []
  const open = (file: string, canRun: () => boolean) =>
    createReceiver({
      verify: unverified(),
      inbox: sqliteInbox({ path: file }),
      order: 'strict',
      logger: silent,
      eventKey: ({ title }) => `${title}`,
    }).onAny(({ title = '' }) => {
      if (title.startsWith('one') && !canRun()) throw new RetryAfter('1 s')
      events.push(title)
    })
  const send = (receiver: ReturnType<typeof open>, title: string, mediaId = 'media') =>
    deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId, title }))

  const first = open(path, () => false)
  await send(first, 'one')
  await until(async () => (await first.inbox.stats()).retrying === 1)
  await send(first, 'two')
  const file = await crashed(path)
  await first.close({ timeoutMs: 0 })

  const second = open(file, () => true)
  await send(second, 'three')
  await send(second, 'other', 'other')
  await until(async () => events.length === 4)
  expect(events).toEqual(['other', 'one', 'two', 'three'])
  await second.close()
})

/** Opens a receiver whose handler fails for titles that begin with a delay, until `handles`. */
function ordered(path: string, order: 'strict' | 'loose', handled: string[], handles: () => boolean) {
  const inbox = sqliteInbox({ path })
  const eventKey = ({ title }: { readonly title?: string | undefined }) => `${title}`
  const receiver = createReceiver({ verify: unverified(), inbox, order, logger: silent, eventKey })
  receiver.onAny(({ title = '' }) => {
    if (title.startsWith('dead') && !handles()) throw new PermanentFailure('no')
    if (/^\d/.test(title) && !handles()) throw new RetryAfter(title.startsWith('2') ? '2 s' : '1 s')
    handled.push(title)
  })
  const send = (title: string) => deliver(receiver, samplePayload('encoding.finished', { media_id: 'media', title }))
  return { receiver, send }
}

test('a strict order holds after a restart with a replay beside a retry', async () => {
  const path = await freshPath()
  const handled: string[] = []
  const first = ordered(path, 'strict', handled, () => false)
  await first.send('dead')
  await until(async () => (await first.receiver.inbox.stats()).deadLetters === 1)
  await first.send('1 s')
  await until(async () => (await first.receiver.inbox.stats()).retrying === 1)
  await first.receiver.inbox.deadLetters.replay('dead')
  await first.send('last')
  const copy = await crashed(path)
  await first.receiver.close({ timeoutMs: 0 })
  const second = ordered(copy, 'strict', handled, () => true)
  await until(async () => handled.length === 3)
  expect(handled).toEqual(['1 s', 'dead', 'last'])
  await second.receiver.close()
})

test('an order that was loose and becomes strict holds for the retries that wait', async () => {
  const path = await freshPath()
  const handled: string[] = []
  const first = ordered(path, 'loose', handled, () => false)
  for (const title of ['2 s', '1 s']) await first.send(title)
  await until(async () => (await first.receiver.inbox.stats()).retrying === 2)
  await first.receiver.close()
  const second = ordered(path, 'strict', handled, () => true)
  await second.send('last')
  await until(async () => handled.length === 3)
  expect(handled).toEqual(['2 s', '1 s', 'last'])
  await second.receiver.close()
})
