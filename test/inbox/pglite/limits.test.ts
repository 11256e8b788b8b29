import { PGlite } from '@electric-sql/pglite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pgliteInbox } from '../../../src/inbox/pglite.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'

test('An event behind many that wait for a limit is handled at once, and those at their rate, in their first attempt', async () => {
  const db = await PGlite.create()
  const receiver = createReceiver({
    verify: unverified(),
    logger: silent,
    inbox: pgliteInbox({ db, timeoutMs: 60_000 }),
  })
  onTestFinished(async () => {
    await receiver.close({ timeoutMs: 0 })
    await db.close()
  })
  const [limited, free]: [{ mediaId: string; attempt: number; at: number }[], number[]] = [[], []]
  receiver.on(
    'encoding.finished',
    ({ mediaId }, { attempt }) => void limited.push({ mediaId, attempt, at: performance.now() }),
    { name: 'limited', rate: '20/s' },
  )
  receiver.on('file.received', () => void free.push(performance.now()), { name: 'free' })
  await receiver.ready()
  const send = (type: 'encoding.finished' | 'file.received', count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, number) =>
        deliver(receiver, samplePayload(type, { media_id: `${type} ${number}` })),
      ),
    )
  await send('encoding.finished', 150)
  await vi.waitUntil(() => limited.length > 0)
  await send('file.received', 50)
  await vi.waitUntil(() => free.length === 50)
  expect(limited.length).toBeLessThan(100)
  await vi.waitUntil(() => limited.length === 150)
  expect(new Set(limited.map(({ mediaId }) => mediaId)).size).toBe(150)
  expect(limited.map(({ attempt }) => attempt)).toEqual(Array(150).fill(1))
  // Never above 20 a second. It is below when a claim takes long.
  const tookMs = (limited.at(-1)?.at as number) - (limited[0]?.at as number)
  expect(tookMs).toBeGreaterThan(7_300)
  expect(tookMs).toBeLessThan(40_000)
})
