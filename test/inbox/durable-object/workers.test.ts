import { expect, test, vi } from 'vitest'
import { asOnWorkers } from '../../support/as-on-workers.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from './storage-in-node.ts'

asOnWorkers({ fakeTime: true })

test('a handler in an object has the time that the receiver gives it, which is longer than a request', async () => {
  const { createReceiver, unverified } = await import('../../../src/index.ts')
  const { inboxObject } = await import('../../../src/inbox/durable-object/cloudflare.ts')
  let signal: AbortSignal | undefined
  const MediaInbox = inboxObject((_env, inbox) =>
    createReceiver({ verify: unverified(), logger: silent, inbox, handlerTimeoutMs: 60_000 }).onAny(
      (_event, context) => {
        signal ??= context.signal
        return new Promise(() => {})
      },
    ),
  )
  const object = new MediaInbox({ storage: storageInNode() }, {})
  const body = JSON.stringify({ step: 'accept', input: eventOf('one') })
  const answered = object.fetch(new Request('https://object/', { method: 'POST', body }))
  await vi.advanceTimersByTimeAsync(0)
  await answered
  await vi.advanceTimersByTimeAsync(59_000)
  expect(signal?.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(signal?.aborted).toBe(true)
})
