import { expectTypeOf, test } from 'vitest'
import { lruStore } from '../../src/idempotency/lru.ts'
import { type QueueMessage, queueInbox } from '../../src/inbox/queue.ts'
import { createReceiver, type MessageResult, memoryInbox, unverified } from '../../src/index.ts'

const store = lruStore()

test('A queue inbox is given a function that sends, and a store', () => {
  queueInbox({ store, send: (message) => expectTypeOf(message).toEqualTypeOf<QueueMessage>() })
  queueInbox({ store, send: async () => ({ MessageId: 'an id' }), leaseMs: 60_000, sendTimeoutMs: 1_000 })
  // @ts-expect-error It needs a store.
  queueInbox({ send: () => {} })
  // @ts-expect-error There is no such option.
  queueInbox({ store, send: () => {}, lease: 1 })
})

test('Its handlers get no transaction', () => {
  const receiver = createReceiver({ verify: unverified(), inbox: queueInbox({ store, send: () => {} }) })
  // @ts-expect-error The queue has no database.
  receiver.on('encoding.finished', (_event, { transaction }) => transaction)
})

test('A message is JSON: its times are strings', () => {
  expectTypeOf<QueueMessage['receivedAt']>().toEqualTypeOf<string>()
  expectTypeOf<QueueMessage['event']['emittedAt']>().toEqualTypeOf<string | undefined>()
})

test('The result of a message tells the pause of a retry and the failures of a dead one', async () => {
  const result = await createReceiver({ verify: unverified(), inbox: memoryInbox() }).handle('any', { attempt: 1 })
  expectTypeOf(result).toEqualTypeOf<MessageResult>()
  if (result.status === 'retry') expectTypeOf(result.delayMs).toBeNumber()
  if (result.status === 'dead') expectTypeOf(result.failures[0]?.handler).toEqualTypeOf<string | undefined>()
  // @ts-expect-error A message that is done has no delay.
  if (result.status === 'done') result.delayMs
})
