import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { AcceptedEvent, Inbox } from '../../../src/inbox/inbox.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { handlesNothing, openWith } from '../../support/open-with.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'

/** Makes an event of some size, so that the server is full soon. */
function largeEvent(key: string): AcceptedEvent {
  const { event, ...rest } = eventOf(key)
  return { ...rest, event: { ...event, title: 'x'.repeat(2_000) } }
}

describe.skipIf(!findRedis())('bullmqInbox in a Redis that gets full', () => {
  let server: RedisServer
  const inboxes: Inbox[] = []
  beforeEach(async () => {
    server = await RedisServer.start({ settings: { maxmemory: '12mb' } })
  })
  afterEach(async () => {
    for (const inbox of inboxes.splice(0)) await inbox.close({ timeoutMs: 100 })
    await server?.remove()
  })

  /** Opens an inbox that accepts events and handles none. */
  const openFront = () => {
    const { logger, lines } = recordingLogger('info')
    const inbox = openWith(bullmqInbox({ connection: server.url, handles: false }), handlesNothing, logger)
    inboxes.push(inbox)
    return { inbox, lines }
  }

  /** Accepts events until one is not accepted. Returns the keys of those before it, and its outcome. */
  async function fill(inbox: Inbox) {
    const accepted: string[] = []
    for (;;) {
      const key = crypto.randomUUID()
      const outcome = await inbox.accept(largeEvent(key))
      if (outcome !== 'accepted') return { accepted, outcome }
      accepted.push(key)
    }
  }

  test('is overloaded before that, so that everything it has accepted is handled, and then accepts again', async () => {
    const { inbox: front, lines } = openFront()
    const { accepted, outcome } = await fill(front)
    expect(outcome).toBe('overloaded')
    expect(lines.map(({ level }) => level)).toEqual(['error'])
    expect(lines[0]?.message).toMatch(/^Redis is more than 90 % full/)

    const handled = new Set<string>()
    const back = openWith(bullmqInbox({ connection: server.url }), async ({ event }) => {
      handled.add(event.key)
      return { status: 'done' }
    })
    inboxes.push(back)
    await until(async () => handled.size === accepted.length)
    await vi.waitUntil(async () => (await front.accept(eventOf('later'))) !== 'overloaded')
    expect(lines.map(({ level }) => level)).toEqual(['error', 'info'])
  })

  test('is overloaded before that if many events come side by side', async () => {
    const { inbox } = openFront()
    const outcomes = await Promise.all(Array.from({ length: 32 }, () => fill(inbox)))
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['overloaded']))
  })

  test('does not keep an unreadable delivery then', async () => {
    const { inbox } = openFront()
    await fill(inbox)
    const unreadable = { reason: 'no JSON', receivedAt: new Date(), eventId: undefined, body: new Uint8Array(9) }
    await expect(inbox.keepUnreadable?.(unreadable)).rejects.toMatchObject({ code: 'overloaded' })
  })

  test('is overloaded while the deliveries that wait for a silent Redis take 64 MiB', async () => {
    const connection = server.url
    const inbox = openWith(bullmqInbox({ connection, handles: false, timeoutMs: 4_000 }), async () => ({
      status: 'done',
    }))
    inboxes.push(inbox)
    // Those that wait fill it once it answers again.
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
    await inbox.accept(eventOf('before'))
    server.pause()
    const title = 'x'.repeat(65_000)
    const accept = (key: string) => {
      const { event, ...rest } = eventOf(key)
      return inbox.accept({ ...rest, event: { ...event, payload: { ...event.payload, title } } })
    }
    const outcomes: unknown[] = []
    const waiting = Array.from({ length: 700 }, (_, i) =>
      Promise.resolve(accept(`${i}`)).then(
        (outcome) => void outcomes.push(outcome),
        () => {},
      ),
    )
    await until(async () => outcomes.length > 0)
    // Each takes 130 kB.
    expect(new Set(outcomes)).toEqual(new Set(['overloaded']))
    expect(outcomes.length).toBeGreaterThan(150)
    expect(outcomes.length).toBeLessThan(250)
    server.resume()
    await Promise.all(waiting)
    await vi.waitUntil(async () => (await inbox.accept(eventOf('after'))) === 'accepted')
  })
})
