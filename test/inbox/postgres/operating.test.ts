import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import { PostgresDatabase } from '../../../src/inbox/postgres/database.ts'
import { hashKey, hashMedia } from '../../../src/inbox/postgres/keys.ts'
import { openInboxDatabase, postgresInbox } from '../../../src/inbox/postgres.ts'
import { SqlDeadLetters } from '../../../src/inbox/sql/dead-letters.ts'
import { writeHead } from '../../../src/inbox/sql/head.ts'
import { type ActivityMinute, type Handle, type ReplayReport, WebhookError } from '../../../src/index.ts'
import { deliver } from '../../../src/testing/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { ownTime } from '../../support/own-time.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { silent } from '../../support/silent.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { bundled, Forked } from './forked.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const postgres = postgresTests()

  async function openDatabase() {
    const database = await openInboxDatabase({ connection: postgres.server.url, schema: postgres.schema })
    onTestFinished(() => database.close())
    return database
  }

  test('shows the outcome of an event whose process crashed, and of those that it had handled', async () => {
    const folder = await temporaryFolder()
    await postgres.query('CREATE TABLE IF NOT EXISTS effect (media text)')
    const front = postgres.receiver({ handles: false }).onAny(() => {})
    await front.ready()
    const stateOf = async (mediaId: string) => (await front.inbox.history?.(mediaId))?.map(({ state }) => state)
    const program = await bundled(new URL('processes/crashing.ts', import.meta.url), folder)
    const child = new Forked(program, { url: postgres.server.url, schema: postgres.schema }, () => {})
    onTestFinished(() => child.kill())
    await accept(front, 'harmless')
    await vi.waitFor(async () => expect(await stateOf('harmless')).toEqual(['handled']))
    await accept(front, 'culprit')
    await child.ended
    expect(await stateOf('culprit')).toEqual(['running'])
    await postgres
      .receiver({ leaseMs: 300 })
      .onAny(() => {})
      .ready()
    await vi.waitFor(async () => expect(await stateOf('culprit')).toEqual(['handled']))
    expect(await stateOf('harmless')).toEqual(['handled'])
  })

  const sum = (minutes: readonly ActivityMinute[] = [], count: 'accepted' | 'duplicates' | 'rejected' | 'handled') =>
    minutes.reduce((total, minute) => total + minute[count], 0)

  test('sums the activity of its processes, which is there after they have closed', async () => {
    const [one, other] = [postgres.receiver({ handles: false }), postgres.receiver()]
    for (const receiver of [one, other]) await receiver.onAny(() => {}).ready()
    await accept(one, 'a')
    await accept(other, 'b')
    await accept(other, 'b')
    await deliver(one, 'no JSON')
    await vi.waitFor(async () => expect((await other.inbox.stats()).running).toBe(0))
    const since = new Date(Date.now() - 600_000)
    await vi.waitFor(async () => expect(sum(await other.inbox.activity?.(since), 'handled')).toBe(2))
    await one.close()
    const counts = async ({ activity }: Pick<typeof other.inbox, 'activity'>) => {
      const minutes = await activity?.(since)
      return [sum(minutes, 'accepted'), sum(minutes, 'duplicates'), sum(minutes, 'rejected'), sum(minutes, 'handled')]
    }
    expect(await counts({ activity: (from) => other.inbox.activity?.(from) ?? [] })).toEqual([2, 1, 1, 2])
    await other.close()
    expect(await counts(await openDatabase())).toEqual([2, 1, 1, 2])
  })

  test('keeps the activity that it could not write, and removes what is older than a day', async () => {
    const receiver = postgres.receiver().onAny(() => {})
    await receiver.ready()
    await postgres.query(
      `INSERT INTO $schema.activity
       SELECT extract(epoch FROM now() - days * interval '1 day')::bigint / 60, gen_random_uuid(), '[7]'
       FROM unnest(ARRAY[0.9, 1.1]) AS days`,
    )
    await postgres.query('ALTER TABLE $schema.activity RENAME TO moved')
    await accept(receiver, 'media')
    const since = new Date(0)
    await expect(receiver.inbox.activity?.(since)).rejects.toMatchObject({ code: 'unavailable' })
    await postgres.query('ALTER TABLE $schema.moved RENAME TO activity')
    await vi.waitFor(async () => expect(sum(await receiver.inbox.activity?.(since), 'accepted')).toBe(8))
  })

  /** Writes dead letters, the first one the oldest, as if so many events had died. */
  async function writeDeadLetters(count: number) {
    const keys = Array.from({ length: count }, (_, index) => `dead ${index}`)
    const events = keys.map((key) => eventOf(key).event)
    await postgres.query(
      `INSERT INTO $schema.event (hash, media, event, head, received_at, attempts, owed, died_at)
       SELECT hash, media, event, head, now(), 5, '[]', now() + place * interval '1 us'
       FROM unnest($1::uuid[], $2::bigint[], $3::json[], $4::json[]) WITH ORDINALITY AS given (hash, media, event, head, place)`,
      [
        keys.map(hashKey),
        events.map(({ mediaId }) => hashMedia(mediaId)),
        events.map((event) => JSON.stringify(event)),
        events.map(writeHead),
      ],
    )
    return keys
  }

  test('replays 10,000 dead letters in a few seconds, oldest first', async () => {
    const receiver = postgres.receiver({ handles: false })
    await receiver.ready()
    const keys = await writeDeadLetters(10_000)
    const elapsed = ownTime()
    const report = await receiver.inbox.deadLetters.replayAll?.({ perSecond: 10_000 })
    expect(report).toEqual({ total: 10_000, replayed: 10_000, kept: 0 })
    expect(elapsed()).toBeLessThan(8_000)
    expect(await receiver.inbox.stats()).toMatchObject({ waiting: 10_000, deadLetters: 0 })
    const page = await receiver.inbox.events?.list({ order: 'oldest', limit: 20_000 })
    expect(page?.events.map(({ key }) => key)).toEqual(keys)
  })

  test('replays no more dead letters in a second than it is told, and stops on request', async () => {
    const receiver = postgres.receiver({ handles: false })
    await receiver.ready()
    await writeDeadLetters(100)
    const { deadLetters } = await openDatabase()
    const abort = new AbortController()
    const elapsed = ownTime()
    const reports: ReplayReport[] = []
    const onProgress = (report: ReplayReport) => {
      reports.push(report)
      if (report.replayed === 10) abort.abort()
    }
    const report = await deadLetters.replayAll({ perSecond: 20, onProgress, signal: abort.signal })
    // Two at a time: the fifth pair is replayed 400 ms after the first one.
    expect(elapsed()).toBeGreaterThan(300)
    expect(report).toEqual({ total: 100, replayed: 10, kept: 0 })
    expect(reports.map(({ replayed }) => replayed)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(await receiver.inbox.stats()).toMatchObject({ waiting: 10, deadLetters: 90 })
  })

  test('counts unreadable deliveries that still cannot be parsed as kept, when it replays all', async () => {
    const receiver = postgres.receiver({ handles: false }).onAny(() => {})
    await receiver.ready()
    await writeDeadLetters(3)
    await deliver(receiver, '{"type":"encoding.finished"')
    const { deadLetters } = receiver.inbox
    expect(await deadLetters.replayAll?.({ since: new Date(Date.now() - 60_000) })).toEqual({
      total: 4,
      replayed: 3,
      kept: 1,
    })
    expect(await deadLetters.list()).toMatchObject([{ event: undefined }])
    await receiver.close()
    await expect(deadLetters.replayAll?.()).rejects.toMatchObject({
      code: expect.stringMatching(/closing|unavailable/),
    })
  })

  test('leaves a marked unreadable delivery to other processes, without an error, if it closes before the replay', async () => {
    const receiver = postgres.receiver({ handles: false }).onAny(() => {})
    await receiver.ready()
    await deliver(receiver, '{"type":"encoding.finished"')
    await receiver.close()
    const { deadLetters } = await openDatabase()
    const keys = await deadLetters.keys()
    expect(await deadLetters.replayMany(keys)).toEqual(keys)
    const error = vi.fn()
    const check = () => {
      throw new WebhookError('closing', 'the inbox is closing')
    }
    const host = { logger: { ...silent, error } } as unknown as InboxHost
    const inspected = PostgresDatabase.inspected(postgres.pool, postgres.schema, 2_000)
    await new SqlDeadLetters(inspected, { host, check }).replayMarked()
    expect(await postgres.query('SELECT replay FROM $schema.event')).toEqual([{ replay: true }])
    expect(error).not.toHaveBeenCalled()
  })

  test('reports how long its steps take, and which ones fail', async () => {
    const steps: [step: string, error: unknown][] = []
    const measured = (step: string, durationMs: number, error?: unknown) => {
      expect(durationMs).toBeGreaterThan(0)
      steps.push([step, error])
    }
    const failed = new Error('no')
    const handle: Handle = async (_, { transaction, number }) => {
      const scope = { handler: 'handle', signal: new AbortController().signal }
      const run = () => (number === 1 ? Promise.reject(failed) : undefined)
      const hasFailed = await transaction?.(scope, run).catch(() => true)
      return hasFailed ? { status: 'retry', delayMs: 1, completed: [], failures: [] } : { status: 'done' }
    }
    const inbox = postgresInbox({ pool: postgres.pool, schema: postgres.schema }).open({
      handle,
      handlersOf: () => ['handle'],
      handlers: () => [{ name: 'handle' }],
      parse: async () => [eventOf('parsed').event],
      logger: silent,
      observe() {},
      measured,
    })
    onTestFinished(async () => void (await inbox.close()))
    await inbox.ready?.()
    await inbox.accept(eventOf('one'))
    await vi.waitFor(async () =>
      expect(await inbox.events?.get('one')).toMatchObject({ state: 'handled', attempts: 2 }),
    )
    expect(new Set(steps.map(([step]) => step))).toEqual(new Set(['accept', 'claim', 'record', 'transaction']))
    const errors = steps.filter(([, error]) => error !== undefined)
    expect(errors).toEqual([['transaction', failed]])
  })
})
