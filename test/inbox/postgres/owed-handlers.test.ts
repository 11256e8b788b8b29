import type { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { owedHandlers } from '../owed-handlers.suite.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const { receiver, query, throughProxy } = postgresTests()
  owedHandlers(async (inbox, options) => receiver(inbox, options))

  test('a crash of the only process that has a handler or a rule drops none of its runs', async () => {
    const { proxy, pool } = await throughProxy()
    const leaseMs = 900
    const runs: string[] = []
    const v1 = receiver({ leaseMs }).on('encoding.finished', () => {}, { name: 'a' })
    const startV2 = (inbox: { pool?: Pool }, run: () => unknown) =>
      receiver({ ...inbox, leaseMs })
        .on('encoding.finished', () => {}, { name: 'a' })
        .on('encoding.finished', run, { name: 'b' })
        .expect('encoding.started', { then: 'encoding.finished', within: 1, name: 'rule' }, run)
    const v2 = startV2({ pool }, () => new Promise(() => {}))
    await Promise.all([v1.ready(), v2.ready()])
    for (let media = 0; media < 5; media++) await accept(v2, `m ${media}`)
    await deliver(v2, samplePayload('encoding.started', { media_id: 'started' }))
    proxy.close()
    await until(async () => (await query('SELECT FROM $schema.process WHERE expires_at > now()')).length === 1)
    // Only what v1 lacks is left.
    await until(async () => (await query('SELECT FROM $schema.event WHERE due_at IS NOT NULL')).length === 6)
    const restarted = startV2({}, () => runs.push('run'))
    await until(async () => runs.length === 6)
    expect(await restarted.inbox.deadLetters.list()).toEqual([])
  })

  test('an event that is left to another process stays one that may have made a process crash', async () => {
    const front = receiver({ handles: false }).on('encoding.finished', () => {}, { name: 'b' })
    await front.ready()
    await accept(front, 'm')
    await query('UPDATE $schema.event SET crashes = 3')
    const other = receiver().on('encoding.finished', () => {}, { name: 'a' })
    await other.ready()
    await until(async () => (await other.inbox.stats()).retrying === 1)
    expect(await query('SELECT crashes, attempts FROM $schema.event')).toEqual([{ crashes: 3, attempts: 0 }])
  })

  describe('an event that only other processes can go on with', () => {
    const awaiting = () =>
      query<{ turn: number; is_parked: boolean }>(
        `SELECT turn, due_at > now() + interval '23 h' AS is_parked
         FROM $schema.event JOIN $schema.lane USING (media) WHERE event.awaits IS NOT NULL`,
      )

    /** Accepts events that owe `a` and `b`, and waits until a process without `b` has released them. */
    async function released(count: number) {
      const front = receiver({ handles: false })
        .on('encoding.finished', () => {}, { name: 'a' })
        .on('encoding.finished', () => {}, { name: 'b' })
      const { logger, lines } = recordingLogger('warn')
      const runs: string[] = []
      const old = receiver({}, { logger }).on('encoding.finished', ({ mediaId }) => void runs.push(mediaId), {
        name: 'a',
      })
      await Promise.all([front.ready(), old.ready()])
      for (let index = 0; index < count; index++) await accept(front, `m ${index}`)
      await until(async () => (await awaiting()).length === count)
      return { front, old, runs, lines }
    }

    const isEmpty = async () => (await query('SELECT FROM $schema.event WHERE ended_at IS NULL')).length === 0

    test('is not claimed by a process that has none of its handlers', async () => {
      const { front, old, runs } = await released(3)
      expect(await awaiting()).toEqual(Array(3).fill({ turn: 1, is_parked: true }))
      const { events = [] } = (await old.inbox.events?.list()) ?? {}
      expect(events.map(({ state, dueAt, owed }) => [state, dueAt, owed])).toEqual(
        Array(3).fill(['retrying', undefined, ['b']]),
      )
      // The claim that finds this event passes those.
      await accept(front, 'later')
      await until(async () => (await awaiting()).length === 4)
      expect((await awaiting()).map(({ turn }) => turn)).toEqual([1, 1, 1, 1])
      expect(runs).toHaveLength(4)
      const runsOfB: string[] = []
      receiver().on('encoding.finished', ({ mediaId }) => void runsOfB.push(mediaId), { name: 'b' })
      await until(isEmpty)
      expect(runsOfB.toSorted()).toEqual(['later', 'm 0', 'm 1', 'm 2'])
    })

    test('is claimed at once by a process that gets the handler while it runs', async () => {
      await released(3)
      const late = receiver({ leaseMs: 300 }).on('encoding.started', () => {})
      await late.ready()
      late.on('encoding.finished', () => {}, { name: 'b' })
      await until(isEmpty)
    })

    test('is left to processes that have the handler for its type', async () => {
      await released(1)
      const runs: string[] = []
      const other = receiver().on('encoding.started', ({ type }) => void runs.push(type), { name: 'b' })
      await other.ready()
      await accept(other, 'unknown')
      await deliver(other, samplePayload('encoding.started', { media_id: 'other' }))
      await until(async () => runs.length === 1)
      expect(await awaiting()).toEqual([{ turn: 1, is_parked: true }])
      const right = receiver().on(['encoding.started', 'encoding.finished'], ({ type }) => void runs.push(type), {
        name: 'b',
      })
      await right.ready()
      await until(isEmpty)
      expect(runs).toEqual(['encoding.started', 'encoding.finished'])
    })

    test('ends without the handler as soon as that is removed', async () => {
      const { lines } = await released(3)
      const last = receiver().on('encoding.started', () => {}, { name: 'b' })
      await last.ready()
      expect(await awaiting()).toHaveLength(3)
      await last.close()
      await until(isEmpty)
      expect(lines.filter(({ message }) => message.includes('the event ended without it'))).toHaveLength(1)
    })

    test('is claimed however many others wait for the same process', async () => {
      await released(1)
      await query(`INSERT INTO $schema.event (hash, media, event, head, received_at, due_at, completed, owed, awaits)
        SELECT gen_random_uuid(), n, (event::jsonb || jsonb_build_object('key', n::text))::json, head, received_at, due_at,
          completed, owed, awaits
        FROM $schema.event, generate_series(1, 300) AS n`)
      await query(`INSERT INTO $schema.lane (media, ready_at, position, awaits)
        SELECT media, due_at, id, awaits FROM $schema.event ON CONFLICT DO NOTHING`)
      receiver().on('encoding.finished', () => {}, { name: 'b' })
      await until(isEmpty)
    })

    test('is released again by a process that an operator makes retry it', async () => {
      const { old } = await released(1)
      const [event] = (await old.inbox.events?.list())?.events ?? []
      expect(await old.inbox.events?.retryNow(event?.key ?? '')).toBe(true)
      await until(async () => (await awaiting())[0]?.turn === 2)
    })
  })
})
