import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { CloseOptions } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { signalled } from '../support/signalled.ts'
import { answeringInbox, receiverWith } from './listening-receiver.ts'

const body = encodePayload(samplePayload('encoding.finished'))
const delivery = { method: 'POST', url: '/', headers: new Headers(), body }
const report = { unfinished: [] }

/** Makes a receiver whose inbox stores each event when the test says so, and notes with which limits it is closed. */
function subject() {
  const stores: (() => void)[] = []
  const closedWith: (CloseOptions | undefined)[] = []
  const accept = () => new Promise<'accepted'>((resolve) => stores.push(() => resolve('accepted')))
  const inbox = answeringInbox(accept, {
    close: async (options) => {
      closedWith.push(options)
      return report
    },
  })
  const receiver = receiverWith({ inbox }).onAny(() => {})
  const deliverAndStore = () => {
    const answer = receiver.receive(delivery)
    stores.shift()?.()
    return answer
  }
  return { receiver, stores, deliverAndStore, closedWith }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

describe('the inbox of a receiver that closes', () => {
  test('is closed once every delivery in flight has its answer, in the time that is left', async () => {
    const { receiver, stores, closedWith } = subject()
    const answers = [receiver.receive(delivery), receiver.receive(delivery)]
    const closed = receiver.close({ timeoutMs: 100 })
    for (const store of stores) {
      await vi.advanceTimersByTimeAsync(20)
      expect(closedWith).toEqual([])
      store()
    }
    expect((await Promise.all(answers)).map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted'])
    expect(await closed).toBe(report)
    expect(closedWith).toEqual([{ timeoutMs: 60 }])
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([
    [30, 15],
    [undefined, 5_000],
    [Number.POSITIVE_INFINITY, 2_147_483_647],
  ])(
    'is closed, of %s ms, after %d ms, half of the time, though a delivery is still in flight',
    async (timeoutMs, waits) => {
      const { receiver, closedWith } = subject()
      void receiver.receive(delivery)
      void receiver.close(timeoutMs === undefined ? undefined : { timeoutMs })
      await vi.advanceTimersByTimeAsync(waits - 1)
      expect(closedWith).toEqual([])
      await vi.advanceTimersByTimeAsync(2)
      expect(closedWith).toHaveLength(1)
      const left = timeoutMs === Number.POSITIVE_INFINITY ? timeoutMs : waits
      expect(closedWith[0]?.timeoutMs).toBe(left)
    },
  )

  test('is closed immediately if no delivery is in flight any more', async () => {
    const { receiver, deliverAndStore, closedWith } = subject()
    await deliverAndStore()
    await receiver.close({ timeoutMs: 100 })
    expect(closedWith).toEqual([{ timeoutMs: 100 }])
  })

  test('is closed once, however often the receiver is', async () => {
    const { receiver, closedWith } = subject()
    await Promise.all([receiver.close({ timeoutMs: 0 }), receiver.close(), receiver.close({ timeoutMs: 7 })])
    expect(closedWith).toEqual([{ timeoutMs: 0 }])
  })

  test.each([-1, Number.NaN, 'soon'])(
    'is closed with the default, before close rejects the limit %s',
    async (timeoutMs) => {
      const { receiver, deliverAndStore, closedWith } = subject()
      await expect(receiver.close({ timeoutMs: timeoutMs as number })).rejects.toMatchObject({ code: 'invalid_option' })
      expect((await deliverAndStore()).outcome).toBe('closing')
      expect(closedWith).toEqual([{ timeoutMs: 10_000 }])
    },
  )

  test('is told first, so that retries do not wait for the deliveries in flight', async () => {
    const retryNow = vi.fn()
    const inbox = answeringInbox(() => new Promise(() => {}), { retryNow })
    const receiver = receiverWith({ inbox }).onAny(() => {})
    void receiver.receive(delivery)
    void receiver.close()
    expect(retryNow).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(5_000)
  })
})

describe('ready', () => {
  test('resolves if the inbox is ready from the start', async () => {
    await expect(receiverWith().ready()).resolves.toBeUndefined()
  })

  test('waits for the inbox, and rejects with its error', async () => {
    const opened = signalled()
    const order: string[] = []
    const slow = receiverWith({ inbox: answeringInbox(() => 'accepted', { ready: () => opened.promise }) })
    const ready = slow.ready().then(() => order.push('ready'))
    await Promise.resolve()
    order.push('opened')
    opened.resolve()
    await ready
    expect(order).toEqual(['opened', 'ready'])
    const broken = answeringInbox(() => 'accepted', { ready: () => Promise.reject(new Error('no disk')) })
    await expect(receiverWith({ inbox: broken }).ready()).rejects.toThrow('no disk')
  })
})
