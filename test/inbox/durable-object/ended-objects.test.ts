import { expect, test, vi } from 'vitest'
import { inboxObject } from '../../../src/inbox/durable-object/cloudflare.ts'
import { createReceiver, type InboxStats, unverified } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { storageInNode } from './storage-in-node.ts'

/** Objects over the same storage. Each follows one that has ended in the middle of its work. */
function objects() {
  const storage = storageInNode()
  return (handler: () => Promise<void>) => {
    const MediaInbox = inboxObject((_env, inbox) =>
      createReceiver({ verify: unverified(), logger: silent, inbox }).onAny(handler),
    )
    const object = new MediaInbox({ storage }, {})
    return async <Result>(step: string, input?: unknown) => {
      const request = new Request('https://object/', { method: 'POST', body: JSON.stringify({ step, input }) })
      return ((await (await object.fetch(request)).json()) as { result: Result }).result
    }
  }
}

const never = () => new Promise<void>(() => {})

test('an event that runs whenever its object ends becomes a dead letter, without being run again', async () => {
  const next = objects()
  let handler = vi.fn(never)
  await next(handler)('accept', eventOf('one'))
  for (let ended = 1; ended < 10; ended++) {
    await vi.waitFor(() => expect(handler).toHaveBeenCalledOnce())
    handler = vi.fn(never)
    next(handler)
  }
  await vi.waitFor(() => expect(handler).toHaveBeenCalledOnce())
  handler = vi.fn(never)
  const ask = next(handler)
  await vi.waitFor(async () => expect((await ask<InboxStats>('stats')).deadLetters).toBe(1))
  expect(handler).not.toHaveBeenCalled()
})

test('objects that end while nothing is due do not count as crashes of the events that come later', async () => {
  const next = objects()
  for (let ended = 0; ended < 12; ended++) {
    const handler = vi.fn(async () => {})
    const ask = next(handler)
    await ask('accept', eventOf(`key ${ended}`))
    await vi.waitFor(async () => expect(await ask<InboxStats>('stats')).toMatchObject({ waiting: 0, running: 0 }))
    expect(handler).toHaveBeenCalledOnce()
  }
  const handler = vi.fn(never)
  await next(handler)('accept', eventOf('one'))
  await vi.waitFor(() => expect(handler).toHaveBeenCalledOnce())
  const ask = next(never)
  expect(await ask<InboxStats>('stats')).toMatchObject({ deadLetters: 0 })
})
