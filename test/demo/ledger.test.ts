import { describe, expect, test } from 'vitest'
import { type Ledger, problems, summary } from '../../demo/ledger.ts'
import type { DeliveryRecord } from '../../src/service/emulator/sending/sending.ts'
import type { Payload } from '../../src/testing/payload.ts'
import { lifecycle } from '../service/emulator/media/lifecycle-payloads.ts'

const [received, started] = lifecycle({
  id: 'media-1',
  userId: 'user-1',
  title: 'Holiday.mp4',
  qualities: ['360p'],
  receivedAt: BigInt(Date.UTC(2026, 2, 14)) * 1_000_000n,
}) as [Payload, Payload]

const answered = (status: number, attempt = 1): DeliveryRecord => ({
  attempt,
  request: { url: 'http://127.0.0.1/', headers: {}, body: '{}' },
  startedAt: new Date(0),
  durationMs: 1,
  answer: { status, headers: {}, body: '' },
  ...(status !== 200 && { failure: { reason: 'status', message: `answered ${status}` } }),
})

const unanswered: DeliveryRecord = {
  attempt: 1,
  request: { url: 'http://127.0.0.1/', headers: {}, body: '{}' },
  startedAt: new Date(0),
  durationMs: 3_000,
  failure: { reason: 'timeout', message: 'no answer within 3000 ms' },
}

const duplicate: DeliveryRecord = {
  ...answered(200),
  answer: { status: 200, headers: {}, body: '{"status":"duplicate"}' },
}

/** Two events, each handled once: one was rejected first, the other was sent twice. A forged delivery was rejected. */
const good: Ledger = {
  sent: [
    { payload: received, deliveries: [answered(503), answered(200, 2)] },
    { payload: started, deliveries: [answered(200)] },
    { payload: started, deliveries: [duplicate] },
  ],
  bad: [{ what: 'forged', status: 401, delivery: answered(401) }],
  handled: [{ ...received }, { ...started }],
}

describe('the verdict', () => {
  test('finds nothing wrong when every event was handled once and every bad delivery was rejected', () => {
    expect(problems(good)).toEqual([])
  })

  test('finds an event that was handled twice', () => {
    expect(problems({ ...good, handled: [...good.handled, started] })).toEqual([
      'encoding.started of media media-1 at 2026-03-14T00:00:02.716057313Z was handled 2 times',
    ])
  })

  test('finds an event that was not handled', () => {
    expect(problems({ ...good, handled: [started] })).toEqual([
      'file.received of media media-1 at 2026-03-14T00:00:00Z was handled 0 times',
    ])
  })

  test('finds a handled event that was never sent', () => {
    const forged = { ...received, media_id: 'media-2' }
    expect(problems({ ...good, handled: [...good.handled, forged] })).toEqual([
      'file.received of media media-2 at 2026-03-14T00:00:00Z was handled but never sent by the service',
    ])
  })

  test('finds a forged delivery that was acknowledged', () => {
    const bad = [{ what: 'forged', status: 401, delivery: answered(200) }]
    expect(problems({ ...good, bad })).toEqual(['the forged delivery should have been rejected with 401: answered 200'])
  })

  test('finds a malformed delivery that broke the receiver', () => {
    const bad = [{ what: 'malformed', status: 400, delivery: answered(500) }]
    expect(problems({ ...good, bad })).toEqual([
      'the malformed delivery should have been rejected with 400: answered 500',
    ])
  })

  test.each([
    [answered(503), 'answered 503'],
    [answered(202), 'answered 202'],
    [unanswered, 'no answer within 3000 ms'],
  ])('finds an event that was not acknowledged by 200', (last, outcome) => {
    const sent = [...good.sent, { payload: received, deliveries: [answered(503), last] }]
    expect(problems({ ...good, sent })).toEqual([
      `file.received of media media-1 at 2026-03-14T00:00:00Z was not acknowledged: ${outcome}`,
    ])
  })
})

test('the summary counts events, deliveries and handlings by type, and bad deliveries by kind', () => {
  expect(summary(good)).toEqual([
    { name: 'file.received', events: 1, deliveries: 2, rejected: 1, acknowledged: 1, duplicates: 0, handled: 1 },
    { name: 'encoding.started', events: 1, deliveries: 2, rejected: 0, acknowledged: 2, duplicates: 1, handled: 1 },
    { name: '(forged)', deliveries: 1, rejected: 1, acknowledged: 0, duplicates: 0 },
  ])
})
