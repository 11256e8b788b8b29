import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { memoryInbox } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { receiverWithReports } from './reported-receiver.ts'

afterEach(() => void vi.useRealTimers())

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await nextTurn()
}

test('An API that allows 10 calls a second is served at 10 a second for an hour, beside a handler at full speed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  const limited = 36_000
  const { receiver, reports } = receiverWithReports({ inbox: memoryInbox({ maxWaiting: 2 * limited }) })
  const calls: number[] = []
  let free = 0
  receiver.on(
    'encoding.finished',
    () => {
      calls.push(performance.now())
      if ((calls.at(-11) ?? -1_000) > performance.now() - 1_000) throw new Error('429 Too Many Requests')
      return new Promise((resolve) => setTimeout(resolve, 130))
    },
    { rate: '10/s', retry: { attempts: 1 } },
  )
  receiver.on('file.received', () => void free++)
  const startedAt = performance.now()
  for (let event = 0; event < limited; event++) {
    await deliver(receiver, samplePayload('encoding.finished', { media_id: `limited ${event}` }))
    if (event % 10 === 0) await deliver(receiver, samplePayload('file.received', { media_id: `free ${event}` }))
  }
  await turns(400)
  expect(performance.now()).toBe(startedAt)
  expect(free).toBe(3_600)
  while (vi.getTimerCount() > 0 && calls.length < limited) {
    vi.advanceTimersToNextTimer()
    await turns(2)
  }
  expect(calls).toHaveLength(limited)
  expect((calls.at(-1) as number) - startedAt).toBeLessThanOrEqual(3_600_000)
  expect(reports.filter(({ outcome }) => outcome !== 'handled')).toEqual([])
  expect(await receiver.inbox.deadLetters.list()).toEqual([])
})
