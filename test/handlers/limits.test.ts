import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { queueInbox } from '../../src/inbox/queue.ts'
import {
  createReceiver,
  type HandlerOptions,
  lruStore,
  memoryInbox,
  type Receiver,
  unverified,
} from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { receiverWithReports } from './reported-receiver.ts'

afterEach(() => void vi.useRealTimers())

/** A handler whose runs end when the test says so. */
function controlled() {
  const started: string[] = []
  const ends: (() => void)[] = []
  const handler = ({ mediaId }: { mediaId: string }) => {
    started.push(mediaId)
    return new Promise<void>((resolve) => ends.push(resolve))
  }
  return { handler, started, end: () => ends.shift()?.() }
}

const send = (receiver: Receiver, mediaId: string, type: 'encoding.finished' | 'file.received' = 'encoding.finished') =>
  deliver(receiver, samplePayload(type, { media_id: mediaId }))

const turns = async (count = 6) => {
  for (let turn = 0; turn < count; turn++) await nextTurn()
}

describe('the concurrency of a handler', () => {
  test('limits its runs, in the order of acceptance, and leaves the slots to other events', async () => {
    const { receiver, outcomes } = receiverWithReports({ inbox: memoryInbox({ concurrency: 3 }) })
    const { handler, started, end } = controlled()
    receiver.on('encoding.finished', handler, { name: 'limited', concurrency: 2 })
    receiver.on('file.received', () => {}, { name: 'free' })
    for (const mediaId of ['a', 'b', 'c', 'd', 'e']) await send(receiver, mediaId)
    for (const mediaId of ['f', 'g', 'h', 'i']) await send(receiver, mediaId, 'file.received')
    await turns()
    expect(started).toEqual(['a', 'b'])
    expect(outcomes()).toEqual(Array(4).fill('free 1 handled'))
    expect(await receiver.inbox.stats()).toMatchObject({ waiting: 3, running: 2 })
    end()
    await turns()
    expect(started).toEqual(['a', 'b', 'c'])
    for (let runs = 0; runs < 4; runs++) {
      end()
      await turns()
    }
    expect(started).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(await receiver.close()).toEqual({ unfinished: [] })
  })

  test('keeps the events of a media item in order', async () => {
    const { receiver } = receiverWithReports()
    const { handler, started, end } = controlled()
    const others: string[] = []
    receiver.on('encoding.finished', handler, { concurrency: 1 })
    receiver.on('file.received', ({ mediaId }) => void others.push(mediaId))
    await send(receiver, 'first')
    await send(receiver, 'second')
    await send(receiver, 'second', 'file.received')
    await send(receiver, 'third', 'file.received')
    await turns()
    expect([started, others]).toEqual([['first'], ['third']])
    end()
    await turns()
    expect([started, others]).toEqual([['first', 'second'], ['third']])
    end()
    await turns()
    expect(others).toEqual(['third', 'second'])
  })

  test('is kept while a handler ignores its signal', async () => {
    const { receiver, outcomes } = receiverWithReports({ retry: { attempts: 1 } })
    const { handler, started, end } = controlled()
    receiver.on('encoding.finished', handler, { name: 'deaf', concurrency: 1, timeoutMs: 5 })
    await (await send(receiver, 'a')).handled
    expect(outcomes()).toEqual(['deaf 1 dead-lettered'])
    const { handled } = await send(receiver, 'b')
    await turns()
    expect(started).toEqual(['a'])
    end()
    await turns()
    expect(started).toEqual(['a', 'b'])
    end()
    await handled
  })

  test('is shared by the types of a registration, which off can take away', async () => {
    const { receiver } = receiverWithReports()
    const { handler, started, end } = controlled()
    receiver.on(['encoding.finished', 'file.received'], handler, { concurrency: 1 })
    await send(receiver, 'a')
    await turns()
    receiver.off('encoding.finished', handler)
    await send(receiver, 'b', 'file.received')
    await turns()
    expect(started).toEqual(['a'])
    end()
    await turns()
    expect(started).toEqual(['a', 'b'])
    end()
  })

  test('a handler that was removed does not run for the events held at its limit', async () => {
    for (const limit of [{ concurrency: 1 }, { rate: '1/h' } as const]) {
      const { receiver } = receiverWithReports({ retry: { attempts: 1 } })
      const { handler, started, end } = controlled()
      const other = vi.fn()
      receiver.on('encoding.finished', handler, limit).on('encoding.finished', other)
      const sent = await Promise.all(['a', 'b', 'c', 'd'].map((mediaId) => send(receiver, mediaId)))
      await turns()
      expect(started).toEqual(['a'])
      receiver.off(handler)
      await Promise.all(sent.slice(1).map(({ handled }) => handled))
      end()
      await sent[0]?.handled
      expect(started).toEqual(['a'])
      expect(other).toHaveBeenCalledTimes(4)
      expect(receiver.inbox.stats()).toMatchObject({ deadLetters: 0 })
    }
  })

  test('events of other types keep their turn when a handler is removed from one', async () => {
    const { receiver } = receiverWithReports()
    const { handler, started, end } = controlled()
    receiver.on(['encoding.finished', 'file.received'], handler, { concurrency: 1 })
    receiver.onAny(() => {})
    for (const [id, type] of [['a'], ['b', 'file.received'], ['c'], ['d', 'file.received']] as const)
      await send(receiver, id, type)
    await turns()
    receiver.off('encoding.finished', handler)
    for (let i = 0; i < 3; i++) {
      await turns()
      end()
    }
    await turns()
    expect(started).toEqual(['a', 'b', 'd'])
  })

  test("makes a delivery with ack 'handled' wait for its turn", async () => {
    const { receiver } = receiverWithReports({ ack: 'handled', ackTimeoutMs: 400 })
    const { handler, end } = controlled()
    receiver.on('encoding.finished', handler, { concurrency: 1 })
    const late = [send(receiver, 'a'), send(receiver, 'b')]
    expect((await Promise.all(late)).map(({ status }) => status)).toEqual([503, 503])
    const again = send(receiver, 'b')
    end()
    await turns()
    end()
    expect((await again).status).toBe(200)
  })
})

test('A waiting run uses up nothing of the time limit, and counts no attempt', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { receiver, reports, outcomes } = receiverWithReports()
  const runs = () => new Promise((resolve) => setTimeout(resolve, 9))
  receiver.on('encoding.finished', runs, { name: 'limited', rate: '1/s', timeoutMs: 10 })
  for (const mediaId of ['a', 'b', 'c']) await send(receiver, mediaId)
  await turns()
  for (let second = 0; second < 3; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    await turns()
  }
  expect(outcomes()).toEqual(Array(3).fill('limited 1 handled'))
  expect(reports.map(({ durationMs }) => durationMs)).toEqual([9, 9, 9])
})

test('A retry is another run', async () => {
  const { receiver, outcomes } = receiverWithReports({ retry: { attempts: 3, baseMs: 1 } })
  const startedAt: number[] = []
  const fails = () => {
    startedAt.push(performance.now())
    throw new Error('no')
  }
  receiver.onAny(fails, { name: 'fails', rate: '20/s' })
  await (await send(receiver, 'a')).handled
  expect(outcomes()).toEqual(['fails 1 retried', 'fails 2 retried', 'fails 3 dead-lettered'])
  expect((startedAt[2] as number) - (startedAt[0] as number)).toBeGreaterThan(75)
})

describe('an inbox that closes', () => {
  test('finishes the events that wait for a limit, if there is time', async () => {
    const { receiver, outcomes } = receiverWithReports()
    receiver.onAny(() => {}, { name: 'limited', rate: '50/s' })
    for (const mediaId of ['a', 'b', 'c']) await send(receiver, mediaId)
    await turns()
    expect(await receiver.close()).toEqual({ unfinished: [] })
    expect(outcomes()).toEqual(Array(3).fill('limited 1 handled'))
  })

  test('reports the others as waiting, and leaves no timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { receiver, outcomes } = receiverWithReports()
    receiver.onAny(() => {}, { name: 'limited', rate: '1/h' })
    for (const mediaId of ['a', 'b', 'c']) await send(receiver, mediaId)
    await turns()
    const closed = receiver.close({ timeoutMs: 100 })
    await vi.advanceTimersByTimeAsync(100)
    const { unfinished } = await closed
    expect(unfinished.map(({ event, state }) => [event.mediaId, state])).toEqual([
      ['b', 'waiting'],
      ['c', 'waiting'],
    ])
    expect(outcomes()).toEqual(['limited 1 handled'])
    await vi.advanceTimersByTimeAsync(30_000)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the options', () => {
  const invalid = (message: string) =>
    expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining(message) })

  test.each<[object, string]>([
    [{ concurrency: 0 }, 'on: concurrency must be a whole number'],
    [{ concurrency: '2' }, 'on: concurrency must be a whole number'],
    ...['10', '10 / s', '0/s', '1.5/s', '-1/s', '10/d', '100000/s', '', 10, null].map((rate): [object, string] => [
      { rate },
      'on: rate must be a whole number up to 99999 in a second',
    ]),
  ])('cannot be %j', (options, message) => {
    const { receiver } = receiverWithReports()
    expect(() => receiver.onAny(() => {}, options as HandlerOptions)).toThrow(invalid(message))
  })

  test.each([{ concurrency: 1 }, { rate: '10/s' } as const])(
    '%j is refused by an inbox that hands events over',
    (limit) => {
      const inbox = queueInbox({ send() {}, store: lruStore() })
      const receiver = createReceiver({ verify: unverified(), inbox, logger: silent })
      expect(() => receiver.onAny(() => {}, limit)).toThrow(invalid('have no effect with queueInbox'))
      expect(() => receiver.onAny(() => {}, { concurrency: undefined } as HandlerOptions)).not.toThrow()
    },
  )
})
