import { Pool } from 'pg'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, vi } from 'vitest'
import { type PostgresInboxOptions, postgresInbox } from '../../../src/inbox/postgres.ts'
import {
  createReceiver,
  type Receiver,
  type ReceiverOptions,
  type Transactional,
  unverified,
} from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { silent } from '../../support/silent.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'

type PostgresReceiver = Receiver<Transactional<import('pg').PoolClient>>

/** Starts a server for the tests of a file, with these settings. Each test has a schema of its own. */
export function postgresTests(settings: Readonly<Record<string, string>> = {}) {
  let server: PostgresServer
  let pool: Pool
  let tests = 0
  const open: PostgresReceiver[] = []

  beforeAll(async () => {
    server = await PostgresServer.start({ settings })
    pool = new Pool({ connectionString: server.url })
    // Some tests stop the server.
    pool.on('error', () => {})
  })
  afterEach(async () => {
    tests++
    await Promise.all(open.splice(0).map((receiver) => receiver.close({ timeoutMs: 200 })))
  })
  afterAll(async () => {
    await pool?.end()
    await server?.remove()
  })

  const fixture = {
    get server() {
      return server
    },
    get pool() {
      return pool
    },
    /** The schema of the current test. */
    get schema() {
      return `test_${tests}`
    },
    /** Makes a receiver that is closed after the test. Receivers of one test share their events. */
    receiver(inbox: Partial<PostgresInboxOptions> = {}, options: Partial<ReceiverOptions> = {}): PostgresReceiver {
      const of = inbox.connection === undefined ? { pool } : {}
      const { inbox: _, handlers: __, ...rest } = options
      const receiver = createReceiver({
        verify: unverified(),
        logger: silent,
        retry: { baseMs: 1 },
        ...rest,
        inbox: postgresInbox({ ...of, schema: fixture.schema, ...inbox }),
      })
      open.push(receiver)
      return receiver
    },
    /** Starts a proxy in front of the server, and a pool that connects through it, until the end of the test. */
    async throughProxy() {
      const proxy = await TcpProxy.start(server.port)
      const through = new Pool({ connectionString: server.url.replace(`${server.port}`, `${proxy.port}`) })
      through.on('error', () => {})
      onTestFinished(async () => {
        await through.end()
        proxy.close()
      })
      return { proxy, pool: through }
    },
    /** Holds up the claims of the processes that there are, and their renewals, until the test says so or ends. */
    claimsHeldUp: () => heldUp(pool, `SELECT FROM ${fixture.schema}.process FOR UPDATE`),
    /** Holds up the claims and takeovers of every process, and what they record, until the test says so or ends. */
    lanesHeldUp: () => heldUp(pool, `LOCK TABLE ${fixture.schema}.lane IN EXCLUSIVE MODE`),
    /** The media items whose lanes processes have, also those whose leases are over. */
    async held(): Promise<readonly string[]> {
      const rows = await fixture.query<{ media: string }>(
        'SELECT media::text FROM $schema.lane WHERE owner IS NOT NULL',
      )
      return rows.map(({ media }) => media)
    },
    /** The ids of events that are neither handled nor dead. */
    unfinished: () => fixture.query('SELECT id FROM $schema.event WHERE ended_at IS NULL AND died_at IS NULL'),
    /** Waits until every event is handled, or dead. */
    allEnded: () => vi.waitFor(async () => expect(await fixture.unfinished()).toEqual([])),
    /** Runs a query in which `$schema` is the schema of the test. */
    async query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
      return (await pool.query<Row>(sql.replaceAll('$schema', fixture.schema), values)).rows
    },
  }
  return fixture
}

async function heldUp(pool: Pool, lock: string) {
  const blocker = await pool.connect()
  let isHeld = true
  const goOn = async () => {
    if (isHeld) await blocker.query('COMMIT')
    if (isHeld) blocker.release()
    isHeld = false
  }
  onTestFinished(goOn)
  await blocker.query(`BEGIN; ${lock}`)
  /** The number of sessions that wait. */
  const waiting = async () =>
    (await pool.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).rows.length
  return { waiting, goOn }
}

/**
 * Delivers `encoding.finished` of a media item. Events of one media item differ in their `userId`. Resolves with the
 * outcome.
 */
export async function accept(receiver: Pick<Receiver, 'receive'>, mediaId: string, userId = 'user'): Promise<string> {
  return (await deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId, user_id: userId }))).outcome
}
