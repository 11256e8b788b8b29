import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  durableObjectInbox,
  durableObjectStore,
  type InboxObjectOptions,
  inboxObject,
} from '../../../src/cloudflare.ts'
import { createReceiver, type Handler, memoryInbox, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { eventOf } from '../../../src/testing/contract/handling.ts'
import { silent } from '../../conformance/subject.ts'
import { storageInNode } from './storage-in-node.ts'

type Parts = { createReceiver: typeof createReceiver; inboxObject: typeof inboxObject }
type Setup = { parts?: Parts; receiver?: Partial<ReceiverOptions>; limits?: InboxObjectOptions }

const here: Parts = { createReceiver, inboxObject }

/** Makes an object in Node, and a function that asks it to carry out a step. */
function objectWith(handler: Handler, { parts = here, receiver = {}, limits = {} }: Setup = {}) {
  const MediaInbox = parts.inboxObject(
    (_env, inbox) =>
      parts.createReceiver({ verify: unverified(), logger: silent, inbox, ...receiver }).onAny(handler as never),
    limits,
  )
  const object = new MediaInbox({ storage: storageInNode() }, {})
  return async (step: string, input?: unknown) => {
    const request = new Request('https://object/', { method: 'POST', body: JSON.stringify({ step, input }) })
    return (await object.fetch(request)).json()
  }
}

const never = () => new Promise(() => {})

test('an object that is full says so, and an object of another version too', async () => {
  const ask = objectWith(never, { limits: { concurrency: 1, maxWaiting: 1 } })
  expect(await ask('accept', eventOf('one'))).toEqual({ result: 'accepted' })
  await expect.poll(() => ask('stats')).toMatchObject({ result: { running: 1 } })
  expect(await ask('accept', eventOf('two'))).toEqual({ result: 'accepted' })
  expect(await ask('accept', eventOf('three'))).toEqual({ result: 'overloaded' })
  expect(await ask('forget')).toMatchObject({
    error: { code: 'unavailable', message: expect.stringMatching('forget') },
  })
})

test('a receiver with another inbox than the given one is an error that every step answers', async () => {
  const write = vi.spyOn(console, 'error').mockImplementation(() => {})
  const ask = objectWith(never, { receiver: { inbox: memoryInbox() } })
  const answer = await ask('accept', eventOf('one'))
  expect(answer).toMatchObject({ error: { code: 'unavailable', message: expect.stringMatching('the inbox that') } })
  expect(write).toHaveBeenCalledOnce()
  write.mockRestore()
})

test('wrong options are errors at once', () => {
  const namespace = { idFromName: () => ({}), get: () => ({ fetch: never as never }) }
  const make = () => ({}) as never
  const mistakes = [
    () => inboxObject(undefined as never),
    () => inboxObject(make, { maxWait: 1 } as never),
    () => inboxObject(make, { concurrency: 0 }),
    () => durableObjectInbox({ namespace, shard: 1 } as never),
    () => durableObjectInbox({ namespace, shards: 0.5 }),
    () => durableObjectStore({ namespace, ttl: 1 } as never),
    () => durableObjectStore({ namespace, ttlMs: 0 }),
  ]
  for (const mistake of mistakes) expect(mistake).toThrow(expect.objectContaining({ code: 'invalid_option' }))
})

describe('on Workers', () => {
  beforeEach(() => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance', 'Date'],
    })
    vi.resetModules()
  })
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  test('a handler in an object has the time that the receiver gives it, which is longer than a request', async () => {
    const index = await import('../../../src/index.ts')
    const cloudflare = await import('../../../src/cloudflare.ts')
    let signal: AbortSignal | undefined
    const handler: Handler = (_event, context) => {
      signal ??= context.signal
      return never()
    }
    const parts = { createReceiver: index.createReceiver, inboxObject: cloudflare.inboxObject }
    const ask = objectWith(handler, { parts, receiver: { handlerTimeoutMs: 60_000 } })
    await ask('accept', eventOf('one'))
    await vi.advanceTimersByTimeAsync(59_000)
    expect(signal?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(signal?.aborted).toBe(true)
  })
})
