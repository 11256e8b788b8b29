import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { PostgresClaims } from '../../../src/inbox/postgres/claim/claims.ts'
import { hashMedia } from '../../../src/inbox/postgres/keys.ts'
import { PostgresLease } from '../../../src/inbox/postgres/lease.ts'
import type { ClaimRequest } from '../../../src/inbox/sql/store.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { postgresTests } from './postgres-tests.ts'

// The tables are filled by hand, so that each test has exactly the rows that it is about. Media items are numbers.

interface StoredEvent {
  readonly media: number
  /** The time until it is due, if it waits for a retry (ms). Negative if it is due. */
  readonly dueInMs?: number
  readonly crashes?: number
  readonly awaits?: readonly string[]
}

interface ProcessOptions {
  readonly suspects?: number
  readonly handlers?: readonly string[]
  /** The types of its handlers. Absent if they have all. */
  readonly types?: readonly string[]
}

const hourMs = 3_600_000

describe.skipIf(!findPostgres())('the claims of several processes', () => {
  const postgres = postgresTests()
  beforeEach(() => postgres.receiver({ handles: false }).ready())

  /** Stores events, and returns their ids. */
  async function store(...events: readonly StoredEvent[]): Promise<readonly string[]> {
    const ids: string[] = []
    for (const { media, dueInMs, crashes = 0, awaits } of events) {
      const [row] = await postgres.query<{ id: string }>(
        `INSERT INTO $schema.event (id, media, event, received_at, due_at, crashes, awaits)
         VALUES (nextval('$schema.event_id'), $1, '{}', now(), now() + $2::float8 * interval '1 ms', $3, $4)
         RETURNING id::text`,
        [hashMedia(`${media}`), dueInMs, crashes, awaits],
      )
      ids.push(row?.id as string)
    }
    return ids
  }

  /** Begins a process. It remembers which events it has claimed, and says so with each claim. */
  async function process({ suspects = 2, handlers = ['handler'], ...types }: ProcessOptions = {}) {
    const database = postgres.database()
    const names = handlers.map((name) => ({ name, ...types }))
    const lease = new PostgresLease(database, hourMs, suspects, () => names)
    await lease.register({ longRunning: () => undefined, cutOff() {} })
    onTestFinished(() => lease.release().catch(() => {}))
    const claims = new PostgresClaims(database, lease, 16, hourMs)
    const held = new Map<string, number>()
    const claim = async (request: Partial<ClaimRequest> = {}): Promise<readonly string[]> => {
      const { events } = await claims.next(() => ({
        limit: 10,
        withSuspect: true,
        heldBytes: 0,
        skippedMedia: [],
        held: Array.from(held, ([id, releases]) => ({ id, releases })),
        ...request,
      }))
      for (const { id, releases } of events) held.set(`${id}`, releases)
      return events.map(({ id }) => `${id}`)
    }
    return { lease, renewing: database.renewing, claim }
  }

  const end = (...ids: readonly (string | undefined)[]) =>
    postgres.query('DELETE FROM $schema.event WHERE id = ANY ($1)', [ids])

  /** Makes leases run out, as the crash of their processes does. */
  const expire = (...leases: readonly PostgresLease[]) =>
    postgres.query("UPDATE $schema.owner SET expires_at = now() - interval '1 s' WHERE id = ANY ($1)", [
      leases.map(({ id }) => id),
    ])

  /** Locks the rows of events, as a transaction does. Returns a function that ends it. */
  async function lock(...ids: readonly (string | undefined)[]) {
    const client = await postgres.pool.connect()
    await client.query('BEGIN')
    await client.query(`SELECT FROM ${postgres.schema}.event WHERE id = ANY ($1) FOR UPDATE`, [ids])
    let isOpen = true
    const unlock = async () => {
      if (isOpen) await client.query('COMMIT')
      if (isOpen) client.release()
      isOpen = false
    }
    onTestFinished(unlock)
    return unlock
  }

  test('take the first events, in order of acceptance', async () => {
    const ids = await store({ media: 1 }, { media: 2 }, { media: 1 }, { media: 3 })
    const { claim } = await process()
    expect(await claim({ limit: 3 })).toEqual(ids.slice(0, 3))
    expect(await claim()).toEqual(ids.slice(3))
  })

  test.each(['NULL', "now() - interval '1 min' + n * interval '1 ms'"])(
    'take the first event of more than they examine, due at %s',
    async (dueAt) => {
      await postgres.query(`INSERT INTO $schema.event (id, media, event, received_at, due_at)
        SELECT n, n, '{}', now(), ${dueAt} FROM generate_series(1, 5001) AS n`)
      await postgres.query("SELECT setval('$schema.event_id', 5001)")
      expect(await (await process()).claim({ limit: 1 })).toEqual(['1'])
    },
  )

  test.each([
    ['an event', {}],
    ['a due retry', { dueInMs: -1 }],
    ['a suspect', { crashes: 1 }],
  ])('never take %s of a media item that another process has', async (_, kind) => {
    const [first] = await store({ media: 1 })
    const [one, other] = [await process(), await process()]
    expect(await one.claim()).toEqual([first])
    const [of1, of2] = await store({ media: 1, ...kind }, { media: 2, ...kind })
    expect(await other.claim()).toEqual([of2])
    // The process itself has the events of its media item one after another.
    expect(await one.claim()).toEqual([of1])
  })

  test.each([
    ['an event', {}],
    ['a due retry', { dueInMs: -1 }],
    ['a suspect', { crashes: 1 }],
  ])('take no %s of a media item of which the process has enough', async (_, kind) => {
    const [, of2] = await store({ media: 1, ...kind }, { media: 2, ...kind })
    const { claim } = await process()
    expect(await claim({ skippedMedia: ['1'] })).toEqual([of2])
  })

  test.each([
    ['events', {}],
    ['due retries', { dueInMs: -1 }],
    ['suspects', { crashes: 1 }],
  ])(
    'leave %s to the process that has them, however many claims it makes, with and without a result',
    async (_, kind) => {
      const [first] = await store({ media: 1, ...kind })
      const [one, other] = [await process(), await process()]
      expect(await one.claim()).toEqual([first])
      expect(await one.claim()).toEqual([])
      expect(await other.claim()).toEqual([])
      const [second, third] = await store({ media: 2 }, { media: 3 })
      expect(await one.claim({ limit: 1 })).toEqual([second])
      expect(await other.claim()).toEqual([third])
      expect(await (await process()).claim()).toEqual([])
      expect((await postgres.claimed()).toSorted()).toEqual([first, second, third])
    },
  )

  describe('of due retries', () => {
    test('take those first that are due first', async () => {
      const [late, early] = await store({ media: 1, dueInMs: -1_000 }, { media: 2, dueInMs: -2_000 })
      const { claim } = await process()
      expect(await claim({ limit: 1 })).toEqual([early])
      expect(await claim({ limit: 1 })).toEqual([late])
    })

    test('take none that is not due yet', async () => {
      await store({ media: 1, dueInMs: hourMs })
      expect(await (await process()).claim()).toEqual([])
    })

    test('take those of a media item whose other events wait', async () => {
      const ids = await store({ media: 1 }, { media: 1, dueInMs: -1 })
      const { claim } = await process()
      expect(await claim({ limit: 1 })).toEqual(ids)
    })

    test('make them wait, from then on, for nothing and since they were due', async () => {
      await store({ media: 1, dueInMs: -60_000, awaits: ['"handler"'] })
      await (await process()).claim()
      expect(
        await postgres.query(
          `SELECT due_at, awaits, since BETWEEN now() - interval '2 min' AND now() - interval '1 min' AS since
           FROM $schema.event`,
        ),
      ).toEqual([{ due_at: null, awaits: null, since: true }])
    })

    test('pass one whose row is locked, and the later ones of its media item', async () => {
      const [before, locked, after, other] = await store(
        { media: 1, dueInMs: -1 },
        { media: 1, dueInMs: -1 },
        { media: 1, dueInMs: -1 },
        { media: 2, dueInMs: -1 },
      )
      const unlock = await lock(locked)
      const { claim } = await process()
      expect(await claim()).toEqual([before, other])
      await unlock()
      expect(await claim()).toEqual([locked, after])
    })

    test('take one that awaits handlers for a process that has one of them, or once it is too old', async () => {
      const [theirs, ours] = await store(
        { media: 1, dueInMs: -1, awaits: ['"other"'] },
        { media: 2, dueInMs: -1, awaits: ['"other"', '"handler"'] },
      )
      const { claim } = await process()
      expect(await claim()).toEqual([ours])
      await postgres.query("UPDATE $schema.event SET received_at = now() - interval '2 h'")
      expect(await claim()).toEqual([theirs])
    })
  })

  test('pass no handler that another process has, and those that were removed until one has them again', async () => {
    const removed = async () => {
      const rows = await postgres.query<{ name: string }>('SELECT name FROM $schema.removed_handler')
      return rows.map(({ name }) => name)
    }
    const [one, typed, other] = [await process(), await process({ types: ['encoding.finished'] }), await process()]
    await one.lease.release()
    await other.lease.release()
    expect(await removed()).toEqual([])
    await typed.lease.release()
    expect(await removed()).toEqual(['"handler"'])
    await process()
    expect(await removed()).toEqual([])
  })

  test('know the handlers of processes whose lease is not over', async () => {
    const [one, other] = [await process(), await process({ handlers: ['other'] })]
    const names = async () => (await one.lease.readHandlers()).live.flat().map(({ name }) => name)
    expect((await names()).toSorted()).toEqual(['handler', 'other'])
    await expire(other.lease)
    expect(await names()).toEqual(['handler'])
  })

  describe('of suspects', () => {
    test('take one at a time, the one with the fewest crashes and of these the oldest', async () => {
      const [many, few, alsoFew] = await store(
        { media: 1, crashes: 3 },
        { media: 3, crashes: 2 },
        { media: 2, crashes: 2 },
      )
      const { claim } = await process()
      expect(await claim()).toEqual([few])
      expect(await claim({ withSuspect: false })).toEqual([])
      expect(await claim()).toEqual([alsoFew])
      expect(await claim()).toEqual([many])
    })

    test('take it together with the healthy events before it, and none behind it', async () => {
      const [before, suspect, behind] = await store({ media: 1 }, { media: 1, crashes: 1 }, { media: 1 })
      const { claim } = await process()
      expect(await claim()).toEqual([before, suspect])
      // It is only known what is behind once the suspect belongs to the process.
      expect(await claim()).toEqual([behind])
    })

    test('leave it behind an earlier event of its media item that they leave', async () => {
      const [other, before, suspect] = await store({ media: 2 }, { media: 1 }, { media: 1, crashes: 1 })
      const { claim } = await process()
      expect(await claim({ limit: 1 })).toEqual([other])
      expect(await claim({ limit: 1 })).toEqual([before, suspect])
    })

    test('leave it behind an earlier suspect of its media item, and nothing behind one that waits for its retry', async () => {
      const [first, second] = await store({ media: 1, crashes: 2 }, { media: 1, crashes: 1 })
      const [, behind] = await store({ media: 2, crashes: 1, dueInMs: hourMs }, { media: 2 })
      const { claim } = await process()
      expect(await claim()).toEqual([first, behind])
      expect(await claim()).toEqual([second])
    })

    test('leave the events behind one that no process has', async () => {
      await store({ media: 1, crashes: 1 }, { media: 1 })
      expect(await (await process()).claim({ withSuspect: false })).toEqual([])
    })
  })

  test.each([
    ['is over', 'UPDATE $schema.owner SET is_dead = true'],
    ['was taken over', 'DELETE FROM $schema.owner'],
    ['has given up claims since', 'UPDATE $schema.owner SET generation = generation + 1'],
  ])('take nothing for a lease that %s', async (_, sql) => {
    await store({ media: 1 }, { media: 2, dueInMs: -1 }, { media: 3, crashes: 1 })
    const { claim } = await process()
    await postgres.query(sql)
    expect(await claim()).toEqual([])
    expect(await postgres.claimed()).toEqual([])
    expect(await postgres.query('SELECT FROM $schema.event WHERE due_at IS NULL')).toHaveLength(2)
  })

  test.each([
    ['closes', (lease: PostgresLease) => lease.release()],
    ['gives up its claims', (lease: PostgresLease) => lease.releaseOthers([])],
  ])('find the events of a process that %s, before the later ones of the media item', async (_, giveUp) => {
    const old = await store({ media: 1 }, { media: 2 })
    const [one, other] = [await process(), await process()]
    await one.claim()
    // PostgresClaims need not read older events any more.
    await postgres.query("SELECT setval('$schema.event_id', 20000)")
    const [passed] = await store({ media: 3 })
    expect(await other.claim()).toEqual([passed])
    await giveUp(one.lease)
    const late = await store({ media: 1 }, { media: 2, crashes: 1 })
    // The first claim notices that it began at the wrong place.
    expect([await other.claim(), await other.claim()]).toEqual([[], [...old, ...late]])
  })

  test('release what a process has when it closes, so that its late results do not count', async () => {
    await store({ media: 1 }, { media: 2, dueInMs: -1 })
    const { lease, claim } = await process()
    await claim()
    await lease.release()
    expect(await postgres.query('SELECT releases FROM $schema.event')).toEqual([{ releases: 1 }, { releases: 1 }])
  })

  test('go on at the first event that they left', async () => {
    const [first, left] = await store({ media: 1 }, { media: 1 })
    const [one, other] = [await process(), await process()]
    expect(await one.claim({ limit: 1 })).toEqual([first])
    await postgres.query("SELECT setval('$schema.event_id', 20000)")
    const [passed] = await store({ media: 2 })
    expect(await other.claim()).toEqual([passed])
    await end(first)
    await one.lease.renew()
    expect(await other.claim()).toEqual([left])
  })

  test('find what is committed late, among the newest events and retries', async () => {
    const { claim } = await process()
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release())
    const insert = (media: number, dueAt: string) =>
      `INSERT INTO ${postgres.schema}.event (id, media, event, received_at, due_at)
       VALUES (nextval('${postgres.schema}.event_id'), ${media}, '{}', now(), ${dueAt}) RETURNING id::text`
    await client.query('BEGIN')
    const { rows: late } = await client.query<{ id: string }>(`${insert(1, 'NULL')}`)
    const { rows: retry } = await client.query<{ id: string }>(insert(2, "now() - interval '1 s'"))
    const [first, second] = await store({ media: 3 }, { media: 4, dueInMs: -1 })
    expect(await claim()).toEqual([first, second])
    await client.query('COMMIT')
    expect(await claim()).toEqual([late[0]?.id, retry[0]?.id])
  })

  describe('after a crash', () => {
    const crashes = async (...ids: readonly (string | undefined)[]) => {
      const rows = await postgres.query<{ crashes: number; releases: number }>(
        'SELECT crashes, releases FROM $schema.event WHERE id = ANY ($1) ORDER BY id',
        [ids],
      )
      return rows.map(({ crashes, releases }) => [crashes, releases])
    }

    test('take over the first event of each media item as a suspect, before the later ones', async () => {
      const [crashed, other] = [await process({ suspects: 2 }), await process()]
      const ids = await store({ media: 1 }, { media: 1 }, { media: 2 })
      expect(await crashed.claim()).toEqual(ids)
      await expire(crashed.lease)
      await other.lease.takeOver()
      const rows = await postgres.query<{ crashes: number }>('SELECT crashes FROM $schema.event ORDER BY id')
      expect(rows.map(({ crashes }) => crashes)).toEqual([1, 0, 1])
    })

    test('take over the events of the crashed processes only, the first ones of each as suspects', async () => {
      const [one, other, alive, next] = [
        await process({ suspects: 2 }),
        await process({ suspects: 1 }),
        await process(),
        await process(),
      ]
      const mine = await store({ media: 1 }, { media: 2 }, { media: 3 })
      await one.claim()
      const theirs = await store({ media: 4 }, { media: 5 })
      await other.claim()
      const running = await store({ media: 6 })
      await alive.claim()
      await expire(one.lease, other.lease)
      await next.lease.takeOver()
      expect(await crashes(...mine)).toEqual([
        [1, 1],
        [1, 1],
        [0, 1],
      ])
      expect(await crashes(...theirs)).toEqual([
        [1, 1],
        [0, 1],
      ])
      expect(await crashes(...running)).toEqual([[0, 0]])
      expect(await postgres.claimed()).toEqual(running)
      expect(await postgres.query('SELECT FROM $schema.owner')).toHaveLength(2)
      expect(await postgres.query('SELECT FROM $schema.claim')).toHaveLength(2)
    })

    test('take an event over later if its row is locked, and before the later ones of its media item', async () => {
      const [locked, free] = await store({ media: 1 }, { media: 2 })
      const [one, other] = [await process({ suspects: 0 }), await process()]
      await one.claim()
      const unlock = await lock(locked)
      await expire(one.lease)
      await other.lease.takeOver()
      const [late] = await store({ media: 1 })
      expect(await other.claim()).toEqual([free])
      await postgres.query("SELECT setval('$schema.event_id', 20000)")
      const [passed] = await store({ media: 3 })
      expect(await other.claim()).toEqual([passed])
      await unlock()
      await other.lease.takeOver()
      expect([await other.claim(), await other.claim()]).toEqual([[], [locked, late]])
    })

    test('find what was taken over in part before the later events of the media item', async () => {
      const [locked, free] = await store({ media: 1 }, { media: 2 })
      const [one, other] = [await process({ suspects: 0 }), await process()]
      await one.claim()
      await postgres.query("SELECT setval('$schema.event_id', 20000)")
      const [passed] = await store({ media: 3 })
      expect(await other.claim()).toEqual([passed])
      await lock(locked)
      await expire(one.lease)
      await other.lease.takeOver()
      const [late] = await store({ media: 2 })
      expect([await other.claim(), await other.claim()]).toEqual([[], [free, late]])
    })

    test('of a process that was thought dead renew nothing', async () => {
      const [one, other] = [await process(), await process()]
      expect(await one.lease.renew()).toEqual({ isLost: false, hasDead: false })
      await expire(one.lease)
      expect(await other.lease.renew()).toEqual({ isLost: false, hasDead: true })
      await postgres.query('UPDATE $schema.owner SET is_dead = true WHERE id = $1', [one.lease.id])
      expect(await one.lease.renew()).toEqual({ isLost: true, hasDead: true })
    })
  })

  test.each([
    ['a claim', ({ claim }: Awaited<ReturnType<typeof process>>) => claim()],
    ['a takeover', ({ lease }: Awaited<ReturnType<typeof process>>) => lease.takeOver()],
    ['the release of some events', ({ lease }: Awaited<ReturnType<typeof process>>) => lease.releaseOthers([])],
    ['the release of all events', ({ lease }: Awaited<ReturnType<typeof process>>) => lease.release()],
  ])('run one after another: %s waits for the one that runs', async (_, step) => {
    const one = await process()
    const { waiting, goOn } = await postgres.claimsHeldUp()
    const done = step(one)
    await vi.waitFor(async () => expect(await waiting()).toBe(1))
    await goOn()
    await done
  })

  test('are given up once, although Postgres may carry the step out again later', async () => {
    const { lease, renewing, claim } = await process()
    const batch = vi.spyOn(renewing, 'batch')
    await lease.releaseOthers([])
    const [step] = batch.mock.lastCall as [string]
    const [first] = await store({ media: 1 })
    expect(await claim()).toEqual([first])
    await renewing.batch(step)
    expect(await postgres.claimed()).toEqual([first])
  })
})
