import { expect, test, vi } from 'vitest'
import type { HandlerContext } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { receiverWithReports } from './reported-receiver.ts'

const stopped = expect.objectContaining({
  name: 'WebhookError',
  code: 'stopped',
  message: 'stopped by an operator',
})

/** A receiver whose first handler hangs in its first attempt, unless its signal ends it. */
async function withHangingHandler(obeys: boolean) {
  const { receiver, outcomes, reports } = receiverWithReports()
  const contexts: HandlerContext[] = []
  receiver.onAny(
    (_event, context) => {
      contexts.push(context)
      if (contexts.length > 1) return
      return new Promise((_, reject) => {
        if (obeys) context.signal.addEventListener('abort', () => reject(new Error('I was told to stop')))
      })
    },
    { name: 'hangs' },
  )
  receiver.onAny(() => {}, { name: 'next' })
  const { handled } = await deliver(receiver, samplePayload('encoding.finished'))
  const { events } = receiver.inbox
  await vi.waitFor(() => expect(contexts).toHaveLength(1))
  const [{ key = '', startedAt } = {}] = (await events?.list({ state: 'running' }))?.events ?? []
  return { receiver, outcomes, reports, contexts, events, key, startedAt, handled }
}

test.each([
  ['obeys', true],
  ['ignores', false],
])(
  'stops a handler that %s its signal, which fails and is retried; the others run as after any failure',
  async (_, obeys) => {
    const { receiver, outcomes, reports, contexts, events, key, handled } = await withHangingHandler(obeys)
    expect(await events?.stop?.(key)).toBe(true)
    expect(contexts[0]?.signal.reason).toEqual(stopped)
    await handled
    await vi.waitFor(() => expect(outcomes()).toEqual(['hangs 1 retried', 'next 1 handled', 'hangs 2 handled']))
    expect(reports[0]?.error).toEqual(stopped)
    expect(await receiver.close()).toEqual({ unfinished: [] })
  },
)

test('makes a dead letter after the last attempt, with the reason', async () => {
  const { receiver, handled } = receiverWithReports({ retry: { attempts: 1 } })
  let key = ''
  receiver.onAny((event) => {
    key = event.key
    return new Promise(() => {})
  })
  const ended = handled()
  await vi.waitFor(() => expect(key).not.toBe(''))
  await receiver.inbox.events?.stop?.(key)
  await ended
  const [deadLetter] = await receiver.inbox.deadLetters.list()
  expect(deadLetter?.failures[0]?.message).toBe('WebhookError: stopped by an operator')
})

test('stops nothing while no handler runs', async () => {
  const { receiver, events, key, handled } = await withHangingHandler(true)
  expect(await events?.stop?.('unknown')).toBe(false)
  expect(await events?.stop?.(key)).toBe(true)
  await handled
  expect(await events?.stop?.(key)).toBe(false)
  await receiver.close()
})

test('says since when an attempt has been running', async () => {
  const before = Date.now()
  const { receiver, events, key, startedAt, handled } = await withHangingHandler(true)
  expect(Number(startedAt)).toBeGreaterThanOrEqual(before)
  expect(Number(startedAt)).toBeLessThanOrEqual(Date.now())
  await events?.stop?.(key)
  await handled
  await receiver.close()
})
