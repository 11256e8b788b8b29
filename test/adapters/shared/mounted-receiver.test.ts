import { type ExecutionContext, Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, type Mock, onTestFinished, test, vi } from 'vitest'
import { fetchHandler } from '../../../adapters/fetch.ts'
import { honoHandler } from '../../../adapters/hono.ts'
import type { ReceiverSource } from '../../../adapters/shared/mounted-receiver.ts'
import { asOnWorkers } from '../../support/as-on-workers.ts'
import { untyped } from '../../support/untyped.ts'
import { bytes, signedRequest, watchedReceiver } from '../receivers.ts'

const target = 'https://example.com/webhooks/media'
const env = { SECRET: 'a secret' }

let logged: Mock
beforeEach(() => {
  logged = vi.spyOn(console, 'error').mockImplementation(() => {}) as Mock
})
afterEach(() => vi.restoreAllMocks())

type Post = (context?: ExecutionContext) => Promise<{ status: number; body: unknown }>
type Adapter = [name: string, mount: (source: ReceiverSource<[{ SECRET: string }]>) => Post]

const answerOf = async (response: Response) => ({ status: response.status, body: await response.json() })

async function signed(): Promise<Request> {
  const { url, init } = await signedRequest(target, bytes)
  return new Request(url, init)
}

const adapters: Adapter[] = [
  [
    'fetchHandler',
    (source) => {
      const handler = fetchHandler(source)
      return async (context) => answerOf(await handler(await signed(), env, context))
    },
  ],
  [
    'honoHandler',
    (source) => {
      const app = new Hono<{ Bindings: typeof env }>()
      const handler = typeof source === 'function' ? honoHandler((c) => source(c.env)) : honoHandler(source)
      app.post('/webhooks/media', handler)
      return async (context) => answerOf(await app.fetch(await signed(), env, context))
    },
  ],
]

const made = { status: 200, body: { status: 'accepted' } }
const notMade = { status: 500, body: { status: 'error', code: 'internal', message: 'the receiver failed' } }

describe.each(adapters)('%s with a function that makes the receiver', (name, mount) => {
  test('calls it at the first delivery, once, with what the platform passes', async () => {
    const { receiver, handled } = watchedReceiver(bytes)
    const make = vi.fn(() => receiver)
    const post = mount(make)
    expect(make).not.toHaveBeenCalled()
    expect([await post(), await post()]).toEqual([made, made])
    expect(make.mock.calls[0]).toEqual(expect.arrayContaining([env]))
    expect(make).toHaveBeenCalledOnce()
    await expect.poll(() => handled.length).toBe(2)
  })

  test('waits for its promise, and calls it once for two deliveries of one moment', async () => {
    const { receiver } = watchedReceiver(bytes)
    const make = vi.fn(async () => receiver)
    const post = mount(make)
    expect(await Promise.all([post(), post()])).toEqual([made, made])
    expect(make).toHaveBeenCalledOnce()
  })

  test('answers 500 when it is not done after 10 s, calls it again for the next delivery, and uses what comes late', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { receiver } = watchedReceiver(bytes)
    let finish = (_made: typeof receiver) => {}
    const first = new Promise<typeof receiver>((resolve) => {
      finish = resolve
    })
    const never = new Promise<typeof receiver>(() => {})
    const make = vi.fn(() => never).mockReturnValueOnce(first)
    const post = mount(make)
    for (let calls = 1; calls <= 2; calls++) {
      const answer = post()
      await vi.waitFor(() => expect(make).toHaveBeenCalledTimes(calls))
      await vi.advanceTimersByTimeAsync(10_000)
      expect(await answer).toEqual(notMade)
      expect(logged.mock.lastCall?.[1].message).toBe('the receiver was not made within 10 s')
    }
    finish(receiver)
    await first
    expect(await post()).toEqual(made)
    expect(make).toHaveBeenCalledTimes(2)
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('SECRET is missing')
      },
    ],
    ['rejects', () => Promise.reject(new Error('SECRET is missing'))],
    ['makes no receiver', () => ({})],
  ])('answers 500 when it %s, logs why, and calls it again for the next delivery', async (_, fail) => {
    const { receiver } = watchedReceiver(bytes)
    const make = vi.fn<() => never>(() => untyped(receiver)).mockImplementationOnce(fail as () => never)
    const post = mount(make)
    expect(await post()).toEqual(notMade)
    const line = [`media-webhooks: ${name} has no receiver, and answers 500:`, expect.any(Error)]
    expect(logged.mock.calls).toEqual([line])
    expect(logged.mock.calls[0]?.[1].message).toMatch(/SECRET is missing|give it a receiver/)
    expect(await post()).toEqual(made)
    expect(make).toHaveBeenCalledTimes(2)
  })
})

test('fetchHandler keeps the platform running by the given waitUntil rather than by that of its context', async () => {
  const { receiver, handled } = watchedReceiver(bytes)
  const [after, waitUntil] = [vi.fn(), vi.fn()]
  const handler = fetchHandler(() => receiver, { waitUntil: after })
  expect((await handler(await signed(), { waitUntil })).status).toBe(200)
  expect([after.mock.calls.length, waitUntil.mock.calls.length]).toEqual([1, 0])
  await after.mock.calls[0]?.[0]
  expect(handled).toHaveLength(1)
})

describe.each(adapters)('%s on a platform for functions', (_, mount) => {
  afterEach(() => vi.unstubAllEnvs())

  const waiting = { waitUntil() {}, passThroughOnException() {}, props: {} }

  test.each(['VERCEL', 'NETLIFY'])('warns once when the platform passes waitUntil (%s)', async (variable) => {
    vi.stubEnv(variable, '1')
    const { receiver, lines } = watchedReceiver(bytes)
    const post = mount(() => receiver)
    expect(await Promise.all([post(waiting), post(waiting)])).toEqual([made, made])
    expect(await post(waiting)).toEqual(made)
    expect(lines).toMatchObject([{ level: 'warn', message: expect.stringMatching(/can end an instance before/) }])
  })

  test('answers 500 when an application does not pass the context on', async () => {
    vi.stubEnv('VERCEL', '1')
    const { receiver, lines } = watchedReceiver(bytes)
    const post = mount(() => receiver)
    expect((await post()).status).toBe(500)
    expect(lines.at(-1)?.message).toMatch(/memoryInbox loses events it has acknowledged/)
    expect(await post(waiting)).toEqual(made)
  })
})

describe('on Workers', () => {
  asOnWorkers()
  const onWorkers = async () => {
    const { fetchHandler } = await import('../../../adapters/fetch.ts')
    const { createReceiver, unverified } = await import('../../../src/index.ts')
    return { fetchHandler, make: () => createReceiver({ verify: unverified() }) }
  }

  test('a memory inbox that acknowledges first is an error that names the others', async () => {
    const { fetchHandler, make } = await onWorkers()
    expect((await fetchHandler(make)(await signed(), env, { waitUntil() {} })).status).toBe(500)
    expect(logged.mock.calls[0]?.[1].message).toMatch(/durableObjectInbox, or queueInbox .*, or ack: 'handled'$/)
  })

  test('a delivery does not wait for a receiver that is made in a request that has ended', async () => {
    const { receiver } = watchedReceiver(bytes)
    const make = vi.fn(async () => receiver).mockImplementationOnce(() => new Promise(() => {}))
    const handler = (await onWorkers()).fetchHandler(make)
    void handler(await signed(), env)
    expect((await handler(await signed(), env, { waitUntil() {} })).status).toBe(200)
    expect(make).toHaveBeenCalledTimes(2)
  })
})
