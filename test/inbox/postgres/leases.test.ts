import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { PermanentFailure } from '../../../src/index.ts'
import { ownTime } from '../../support/own-time.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { signalled } from '../../support/signalled.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a process that loses its lease', () => {
  const postgres = postgresTests()

  /** Makes a lease run out, as a long pause does, and keeps the process from renewing it in time. */
  const expire = (id?: string) =>
    postgres.query("UPDATE $schema.process SET expires_at = now() - interval '1 s' WHERE id = $1", [id])

  /**
   * Opens two receivers. The first one handles an event, and the second one has taken it over.
   * @param firstLeaseMs long enough for the second one to do so before the first one renews its lease, and notices
   * @param before called before the second one writes
   */
  async function takenOver(firstLeaseMs = 9_000, before: () => unknown = () => {}) {
    const started = signalled()
    const resume = signalled()
    const signals: AbortSignal[] = []
    const results: unknown[] = []
    await postgres.query('CREATE TABLE IF NOT EXISTS written (writer text)')
    await postgres.query('TRUNCATE written')
    const first = postgres.receiver({ leaseMs: firstLeaseMs })
    first.onAny(
      async (_, { transaction, signal }) => {
        signals.push(signal)
        started.resolve()
        await resume.promise
        results.push(
          await transaction((client) => client.query("INSERT INTO written VALUES ('first')")).catch((error) => error),
        )
      },
      { name: 'write' },
    )
    await first.ready()
    await accept(first, 'media')
    await started.promise
    const [lease] = await postgres.query<{ id: string }>('SELECT id FROM $schema.process')
    const second = postgres.receiver({ leaseMs: 600 })
    const handled = vi.fn()
    second.onAny(
      async (_, { transaction, attempt }) => {
        handled(attempt)
        await before()
        await transaction((client) => client.query("INSERT INTO written VALUES ('second')"))
      },
      { name: 'write' },
    )
    await second.ready()
    // The second one is open before, since the first one could notice while it starts on a busy machine.
    await expire(lease?.id)
    await vi.waitFor(() => expect(handled).toHaveBeenCalledTimes(1))
    return { first, second, handled, resume, signals, results }
  }

  const secondWrote = () =>
    vi.waitFor(async () => expect(await postgres.query('SELECT writer FROM written')).toEqual([{ writer: 'second' }]))

  test('writes nothing, and the process that took over writes once', async () => {
    const { resume, results, signals } = await takenOver()
    await vi.waitFor(() => expect(signals[0]?.aborted).toBe(true))
    resume.resolve()
    await vi.waitFor(() => expect(results.length).toBe(1))
    expect(results[0]).toMatchObject({ name: 'WebhookError', code: 'lease_lost' })
    await secondWrote()
  })

  test('is taken over in time although the clock of Postgres was 30 days ahead when it began', async () => {
    await postgres.receiver({ handles: false }).ready()
    await postgres.query(`INSERT INTO $schema.process (id, expires_at, lease_ms, handlers)
      VALUES ('00000000-0000-0000-0000-000000000001', now() + interval '30 days', 600, '[]')`)
    await postgres
      .receiver({ leaseMs: 600 })
      .onAny(() => {})
      .ready()
    const dead = "SELECT FROM $schema.process WHERE id = '00000000-0000-0000-0000-000000000001'"
    await vi.waitFor(async () => expect(await postgres.query(dead)).toEqual([]), 5_000)
  })

  test('writes nothing even before it notices', async () => {
    // It renews its lease every minute, so it notices nothing during the test.
    const { resume, results, signals } = await takenOver(180_000)
    expect(signals[0]?.aborted).toBe(false)
    resume.resolve()
    await vi.waitFor(() => expect(results.length).toBe(1))
    expect(results[0]).toMatchObject({ code: 'lease_lost' })
    await secondWrote()
  })

  test('writes nothing even if the event became a dead letter and was replayed in the meantime', async () => {
    const replayed = signalled()
    const fail = () => {
      before = () => replayed.promise
      throw new PermanentFailure('no')
    }
    let before: () => unknown = fail
    const { second, handled, resume, results } = await takenOver(180_000, () => before())
    const { deadLetters } = second.inbox
    await vi.waitFor(async () => expect(await deadLetters.list()).toHaveLength(1))
    await deadLetters.replayAll?.()
    await vi.waitFor(() => expect(handled).toHaveBeenCalledTimes(2))
    resume.resolve()
    await vi.waitFor(() => expect(results[0]).toMatchObject({ code: 'lease_lost' }))
    replayed.resolve()
    await secondWrote()
  })

  test('is taken over although every renewal takes longer than the slack of a lease', async () => {
    await postgres.receiver({ handles: false }).ready()
    await postgres.query(`
      CREATE FUNCTION $schema.slowly() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.32); RETURN NEW; END';
      CREATE TRIGGER slowly BEFORE UPDATE ON $schema.process FOR EACH STATEMENT EXECUTE FUNCTION $schema.slowly()`)
    const { resume, results } = await takenOver(180_000)
    resume.resolve()
    await vi.waitFor(() => expect(results.length).toBe(1))
  })

  test('does not lose it while it waits to take over the events of others', async () => {
    const resume = signalled()
    const signals: AbortSignal[] = []
    const receiver = postgres.receiver({ leaseMs: 600 }).onAny(async (_, { signal }) => {
      signals.push(signal)
      await resume.promise
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(() => expect(signals).toHaveLength(1))
    const claims = await postgres.lanesHeldUp()
    await postgres.query(`INSERT INTO $schema.process (id, expires_at, lease_ms, handlers)
      VALUES ('00000000-0000-0000-0000-000000000000', now() - interval '1 s', 600, '[]')`)
    await vi.waitFor(async () => expect(await claims.waiting()).toBeGreaterThan(0))
    const alive = () => postgres.query("SELECT id FROM $schema.process WHERE expires_at > now() + interval '300 ms'")
    // The test waits for two lease times, by the timers that renew the lease.
    for (let i = 0; i < 12; i++) await new Promise((settle) => setTimeout(settle, 100))
    await vi.waitFor(async () => expect(await alive()).toHaveLength(1))
    expect(signals[0]?.aborted).toBe(false)
    await claims.goOn()
    resume.resolve()
  })

  test('claims nothing before it notices, so that no event stays with a process that is thought dead', async () => {
    const { second, handled, resume } = await takenOver(180_000)
    await second.close()
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    await accept(accepting, 'later')
    // The first process hears of the event, and has lost its lease.
    await new Promise((settle) => setTimeout(settle, 200))
    const third = postgres.receiver({ leaseMs: 600 }).onAny(({ mediaId }) => handled(mediaId), { name: 'write' })
    await third.ready()
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('later'))
    resume.resolve()
  })

  test('begins a new lease and handles events again', async () => {
    const { first, second, resume } = await takenOver()
    resume.resolve()
    await second.close()
    await vi.waitFor(async () => expect(await accept(first, 'later')).toBe('accepted'))
    await vi.waitFor(async () =>
      expect(await postgres.query('SELECT writer FROM written')).toEqual([{ writer: 'second' }, { writer: 'first' }]),
    )
  })
})

describe.skipIf(!findPostgres())('processes that share their events', () => {
  const postgres = postgresTests()

  test('begin an event of another process as soon as they hear of it, and look for it every 250 ms without LISTEN', async () => {
    const medianMs = async (listen: boolean) => {
      const begun = new Map<string, number>()
      const handling = postgres.receiver({ listen }).onAny(({ mediaId }) => void begun.set(mediaId, performance.now()))
      const accepting = postgres.receiver({ handles: false }).onAny(() => {})
      await Promise.all([handling.ready(), accepting.ready()])
      await new Promise((resolve) => setTimeout(resolve, 100))
      const waits: number[] = []
      for (let index = 0; index < 15; index++) {
        const mediaId = `media ${listen} ${index}`
        await accept(accepting, mediaId)
        const acceptedAt = performance.now()
        await vi.waitFor(() => expect(begun.has(mediaId)).toBe(true), { interval: 1 })
        waits.push((begun.get(mediaId) as number) - acceptedAt)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      await handling.close()
      return waits.toSorted((a, b) => a - b)[7] as number
    }
    const [heard, found] = [await medianMs(true), await medianMs(false)]
    // 5 and 130 ms on an idle machine.
    expect(heard).toBeLessThan(found / 2)
    expect(found).toBeLessThan(500)
  })

  test('release their events to the others immediately when they close', async () => {
    const started = signalled()
    const first = postgres.receiver()
    first.onAny(
      () => {
        started.resolve()
        return new Promise(() => {})
      },
      { name: 'handle' },
    )
    await first.ready()
    await accept(first, 'media', 'one')
    await accept(first, 'media', 'two')
    await started.promise
    const handled: (string | undefined)[] = []
    const second = postgres.receiver().onAny(({ userId }) => void handled.push(userId), { name: 'handle' })
    await second.ready()
    const elapsed = ownTime()
    const { unfinished } = await first.close({ timeoutMs: 20 })
    expect(unfinished.map(({ event, state }) => [event.userId, state])).toEqual([['one', 'running']])
    await vi.waitFor(() => expect(handled).toEqual(['one', 'two']))
    expect(elapsed()).toBeLessThan(1_500)
    expect(await postgres.query('SELECT 1 FROM $schema.process')).toHaveLength(1)
  })

  test('only accept, if one does not handle', async () => {
    const accepting = postgres.receiver({ handles: false })
    const handler = vi.fn()
    accepting.onAny(handler)
    await accepting.ready()
    expect(await accept(accepting, 'media')).toBe('accepted')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(handler).not.toHaveBeenCalled()
    expect(await accepting.inbox.stats()).toMatchObject({ waiting: 1, running: 0, retrying: 0, deadLetters: 0 })
  })
})

describe.skipIf(!findPostgres())('a process that cannot look around', () => {
  const postgres = postgresTests()

  test('renews its lease, and goes on with its handlers', async () => {
    const { logger, lines } = recordingLogger('warn')
    const finish = signalled()
    const signals: AbortSignal[] = []
    const receiver = postgres.receiver({ leaseMs: 1_500, timeoutMs: 1_000 }, { logger })
    receiver.onAny(async (_, { signal }) => {
      signals.push(signal)
      await finish.promise
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(() => expect(signals).toHaveLength(1))
    const client = await postgres.pool.connect()
    await client.query(`BEGIN; LOCK TABLE ${postgres.schema}.lane IN ACCESS EXCLUSIVE MODE`)
    await sleep(4_000)
    await client.query('COMMIT')
    client.release()
    expect(signals[0]?.aborted).toBe(false)
    expect(lines.filter(({ message }) => message.includes('lease'))).toEqual([])
    finish.resolve()
    await postgres.allEnded()
    expect(signals).toHaveLength(1)
  })
})
