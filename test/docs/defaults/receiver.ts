import { vi } from 'vitest'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import {
  createReceiver,
  type ReceiverOptions,
  RetryAfter,
  type RetryOptions,
  unverified,
  type Verifier,
} from '../../../src/index.ts'
import { deliver, makeDelivery, samplePayload } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { elapsed, never, type Observations, required } from './elapsed.ts'

const payload = samplePayload('encoding.finished')

const receiverWith = (options: Partial<ReceiverOptions> = {}) =>
  createReceiver({ verify: unverified(), logger: silent, ...options })

/** Counts the attempts of an event whose handler always fails, and measures the pauses between them, at their longest. */
async function attemptsWith(retry?: RetryOptions) {
  const random = vi.spyOn(Math, 'random').mockReturnValue(1)
  const startedAt: number[] = []
  const receiver = receiverWith(retry && { retry }).onAny(() => {
    startedAt.push(performance.now())
    throw new Error('no')
  })
  await elapsed(async () => (await deliver(receiver, payload)).handled)
  random.mockRestore()
  const pauses = startedAt.slice(1).map((at, index) => Math.round(at - (startedAt[index] as number)))
  return { attempts: startedAt.length, pauses }
}

/** The key of an event whose verifier finds an id. */
async function keyWith(eventId?: string) {
  const verifier: Verifier = {
    name: 'test',
    needsBytes: false,
    verify: () => ({ verified: true, ...(eventId && { eventId }) }),
  }
  let key = ''
  const receiver = receiverWith({ verify: verifier }).onAny((event) => {
    key = event.key
  })
  await (await deliver(receiver, payload)).handled
  return key
}

/** The methods of the console that are called while a delivery is rejected and a handler fails permanently. */
async function consoleMethods() {
  const methods = ['debug', 'log', 'info', 'warn', 'error'] as const
  const spies = methods.map((method) => vi.spyOn(console, method).mockImplementation(() => {}))
  const receiver = createReceiver({ verify: unverified(), retry: { attempts: 2, baseMs: 1 } }).onAny(() => {
    throw new Error('no')
  })
  await deliver(receiver, 'no JSON')
  await (await deliver(receiver, payload)).handled
  const called = methods.filter((_, index) => (spies[index]?.mock.calls.length ?? 0) > 0)
  for (const spy of spies) spy.mockRestore()
  return called.join()
}

export const ofReceiver: Observations = {
  verify: () => required(() => createReceiver(untyped({}))),
  sender: () => receiverWith().sender.name === 'media-service' && 'the media service',
  handlers: () => (receiverWith().handles('encoding.finished') ? 'some' : 'none'),
  inbox: () =>
    receiverWith().inbox.constructor === receiverWith({ inbox: memoryInbox() }).inbox.constructor && 'memoryInbox()',
  async ack() {
    const { status, outcome } = await deliver(receiverWith().onAny(never), payload)
    return status === 200 && outcome
  },
  ackTimeoutMs: () => elapsed(() => deliver(receiverWith({ ack: 'handled' }).onAny(never), payload)),
  async order() {
    const started: unknown[] = []
    const receiver = receiverWith().onAny(({ title }) => {
      started.push(title)
      if (title === 'first') throw new RetryAfter('1 h')
    })
    for (const title of ['first', 'second']) await deliver(receiver, { ...payload, title, emitted_at: title })
    await vi.waitUntil(() => started.includes('first'))
    await new Promise((resolve) => setImmediate(resolve))
    return started.includes('second') ? 'loose' : 'strict'
  },
  handlerTimeoutMs: () =>
    elapsed(() => {
      const aborted = new Promise((resolve) => {
        const receiver = receiverWith().onAny((_, { signal }) => {
          signal.addEventListener('abort', resolve)
          return never()
        })
        void deliver(receiver, payload)
      })
      return aborted
    }),
  async retry() {
    const { attempts, pauses } = await attemptsWith()
    const { pauses: many } = await attemptsWith({ attempts: 20 })
    return { attempts, baseMs: pauses[0], maxMs: Math.max(...many) }
  },
  bodyTimeoutMs: () =>
    elapsed(async () => receiverWith().receive({ ...(await makeDelivery(payload)), body: () => never() })),
  maxBodyBytes: async () => {
    let largest: number | undefined
    const body = async (limit: number) => {
      largest = limit
      return 'too_large' as const
    }
    await receiverWith().receive({ ...(await makeDelivery(payload)), body })
    return largest
  },
  async eventKey() {
    const [offered, made] = [await keyWith('id of the event'), await keyWith()]
    const isOffered = offered.includes('id of the event')
    return isOffered && made.includes(payload.media_id) && 'from the verifier, otherwise from the payload'
  },
  platform() {
    let platform: unknown
    const warn = (details: object) => {
      platform = 'platform' in details && details.platform
    }
    process.env['VERCEL'] = '1'
    try {
      receiverWith({ ack: 'handled', logger: { ...silent, warn } })
    } finally {
      delete process.env['VERCEL']
    }
    return platform === 'Vercel' && 'by the environment'
  },
  // There is nothing to observe.
  hooks: () => 'none',
  telemetry: () => 'none',
  logger: async () => ((await consoleMethods()) === 'warn,error' ? 'warnings and errors on the console' : 'other'),
}

export const ofClose: Observations = {
  timeoutMs: () =>
    elapsed(async () => {
      const receiver = receiverWith({ handlerTimeoutMs: 1_000_000 }).onAny(never)
      await deliver(receiver, payload)
      await receiver.close()
    }),
}
