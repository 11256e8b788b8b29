import { describe, expect, test, vi } from 'vitest'
import type { HandlerContext, MediaEvent } from '../../src/index.ts'
import { samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { receiverWithReports } from './reported-receiver.ts'

describe('the context of a handler', () => {
  test('has the event key, the attempt and the time at which the delivery was accepted', async () => {
    const { receiver, handled } = receiverWithReports()
    const seen: { event: MediaEvent; key: string; attempt: number; receivedAt: Date }[] = []
    receiver.onAny((event, { key, attempt, receivedAt }) => {
      seen.push({ event, key, attempt, receivedAt })
      if (attempt < 3) throw new Error('no')
    })
    const before = Date.now()
    await handled()
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    const [first] = seen
    expect(first?.key).toBe(first?.event.key)
    expect(first?.event.payload).toEqual(samplePayload('encoding.finished'))
    expect(first?.receivedAt.getTime()).toBeGreaterThanOrEqual(before)
    for (const { event, key, receivedAt } of seen)
      expect([event, key, receivedAt]).toEqual([first?.event, first?.key, first?.receivedAt])
  })

  test("logs to the receiver's logger, each line with the event and the handler, never its title", async () => {
    const info = vi.fn()
    const { receiver, handled } = receiverWithReports({ logger: { ...silent, info } })
    let context: HandlerContext | undefined
    receiver.onAny(
      (_event, given) => {
        context = given
        given.log.info({ step: 2 }, 'published')
      },
      { name: 'publish' },
    )
    await handled()
    const { media_id: mediaId } = samplePayload('encoding.finished')
    expect(info.mock.calls).toEqual([
      [{ key: context?.key, type: 'encoding.finished', mediaId, handler: 'publish', step: 2 }, 'published'],
    ])
  })

  test('is not made for a duplicate, which runs no handler', async () => {
    const { receiver, handled } = receiverWithReports()
    const handler = vi.fn()
    receiver.onAny(handler)
    await handled()
    expect((await handled()).outcome).toBe('duplicate')
    expect(handler).toHaveBeenCalledTimes(1)
  })
})

describe('a handler that is removed', () => {
  test('still runs for the event that is being handled, and for no later one', async () => {
    const { receiver, handled, outcomes } = receiverWithReports()
    const removed = vi.fn()
    receiver.onAny(() => void receiver.off(removed), { name: 'remover' })
    receiver.on('encoding.finished', removed, { name: 'removed' })
    await handled({ media_id: 'media-1' })
    await handled({ media_id: 'media-2' })
    expect(outcomes()).toEqual(['remover 1 handled', 'removed 1 handled', 'remover 1 handled'])
  })
})
