import { setTimeout as sleep } from 'node:timers/promises'
import { Client, type Connection, Pool, type PoolClient, Query } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { poolOf } from '../../../src/inbox/postgres.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { signalled } from '../../support/signalled.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('context.transaction of postgresInbox', () => {
  const postgres = postgresTests()
  const write = (client: PoolClient) => client.query('INSERT INTO public.row VALUES (1)')
  const rows = async () => (await postgres.query('SELECT 1 FROM public.row')).length

  async function withTable() {
    await postgres.query('CREATE TABLE IF NOT EXISTS public.row (n int)')
    await postgres.query('TRUNCATE public.row')
  }

  function limitedPool(max: number): Pool {
    const pool = new Pool({ connectionString: postgres.server.url, max })
    onTestFinished(() => pool.end())
    return pool
  }

  test('writes once although the answer to the commit was lost', async () => {
    await withTable()
    const { proxy, pool } = await postgres.throughProxy()
    const attempts: (number | string)[] = []
    const receiver = postgres.receiver({ pool })
    receiver.onAny(async (_, { attempt, transaction }) => {
      attempts.push(attempt)
      await transaction(async (client) => {
        await write(client)
        proxy.mute()
        void sleep(150).then(() => proxy.breakFor(50))
      }).catch((error) => {
        attempts.push('unknown')
        throw error
      })
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await postgres.allEnded()
    expect(attempts).toEqual([1, 'unknown'])
    expect(await rows()).toBe(1)
  })

  test('writes nothing once the handler has timed out, even if its statement is still running', async () => {
    await withTable()
    const receiver = postgres.receiver({}, { handlerTimeoutMs: 100, retry: { attempts: 1 } })
    const errors: unknown[] = []
    receiver.onError((error) => void errors.push(error))
    receiver.onAny((_, { transaction }) =>
      transaction(async (client) => {
        await write(client)
        await client.query('SELECT pg_sleep(0.3)')
      }),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect((await receiver.inbox.stats()).deadLetters).toBe(1))
    expect(errors).toMatchObject([{ code: 'timeout' }])
    await sleep(400)
    expect(await rows()).toBe(0)
  })

  /** Makes a receiver with one attempt, whose handler's transaction first does what breaks it, some times. */
  async function breaking(breaks: (client: PoolClient) => Promise<unknown>, times: number) {
    await withTable()
    const receiver = postgres.receiver({}, { retry: { attempts: 1, baseMs: 1 } })
    const attempts: number[] = []
    receiver.onAny(async (_, { attempt, transaction }) => {
      attempts.push(attempt)
      await transaction(async (client) => {
        await write(client)
        if (attempts.length <= times) await breaks(client)
      })
    })
    await receiver.ready()
    await accept(receiver, 'media')
    return { receiver, attempts }
  }

  const failAtCommit = (name: string, code: string) => (client: PoolClient) =>
    client.query(`
      CREATE TABLE "${name}" (n int);
      CREATE FUNCTION pg_temp.fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${code}'; END $$;
      CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON "${name}" DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION pg_temp.fail();
      INSERT INTO "${name}" VALUES (1)`)

  const raise = (code: string) => (client: PoolClient) =>
    client.query(`DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${code}'; END $$`)

  test.each<[string, (client: PoolClient) => Promise<unknown>]>([
    ['a lost connection', (client) => client.query('SELECT pg_terminate_backend(pg_backend_pid())')],
    [
      'a lost connection that the handler does not notice itself',
      (client) => client.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {}),
    ],
    ['a full disk', raise('53100')],
    [
      'a full disk, in an error that wraps it',
      (client) =>
        raise('53100')(client).catch((cause) => {
          throw new Error('the query failed', { cause })
        }),
    ],
    ['a conflict with another transaction', raise('40001')],
    ['a conflict that its next query tells', (client) => raise('40001')(client).catch(() => write(client))],
    ['a conflict that its commit tells', (client) => raise('40001')(client).catch(() => {})],
  ])('does not count an attempt that fails by %s', async (_, breaks) => {
    const { receiver, attempts } = await breaking(breaks, 3)
    await postgres.allEnded()
    expect(await receiver.inbox.stats()).toMatchObject({ deadLetters: 0 })
    expect(attempts).toEqual([1, 1, 1, 1])
    expect(await rows()).toBe(1)
  })

  test.each<[string, (client: PoolClient) => Promise<unknown>]>([
    ['an error of its handler', () => Promise.reject(undefined)],
    ['a constraint', raise('23505')],
    ['a statement that takes too long', raise('57014')],
    ['a missing file', (client) => client.query("SELECT pg_read_file('/nowhere')")],
    ['a limit of the configuration', raise('53400')],
    ['its own read-only transaction', (client) => client.query('SET TRANSACTION READ ONLY')],
    ["another service's code", () => Promise.reject(Object.assign(new Error('no'), { code: '530' }))],
    ["another service's number", () => Promise.reject(Object.assign(new Error('no'), { code: 530 }))],
    ['a code that Postgres did not send', () => Promise.reject(Object.assign(new Error('no'), { code: '53100' }))],
    [
      'an error that is its own cause',
      () => {
        const error: Error = new Error('no')
        return Promise.reject(Object.assign(error, { cause: error }))
      },
    ],
    ['a query that it does not await', async (client) => void client.query('SELECT pg_sleep(3)').catch(() => {})],
    [
      'a cursor that it leaves open',
      // As pg-cursor does: it is submitted, and stays the query of its client until it is closed.
      async (client) => {
        const open = { submit() {}, handleError() {}, handleReadyForQuery() {} }
        client.query(open as never)
      },
    ],
    ['a trigger that fails with the commit', failAtCommit('58030 at commit', '53000')],
    [
      'a pause in which Postgres ends it',
      async (client) => {
        const ended = new Promise((resolve) => client.once('end', resolve))
        await client.query('SET LOCAL idle_in_transaction_session_timeout = 1')
        await ended
      },
    ],
  ])('counts an attempt that fails by %s', async (_, breaks) => {
    const { receiver, attempts } = await breaking(breaks, Number.POSITIVE_INFINITY)
    await vi.waitFor(async () => expect(await receiver.inbox.stats()).toMatchObject({ deadLetters: 1 }))
    expect(attempts).toEqual([1])
    expect(await rows()).toBe(0)
  })

  test('reports an error of the handler after it, and does not run the handler again', async () => {
    await withTable()
    const receiver = postgres.receiver()
    const runs = vi.fn()
    const onError = vi.fn()
    receiver.onError((_, handling) => onError(handling.willRetry))
    receiver.onAny(async (_, { transaction }) => {
      runs()
      await transaction(write)
      throw new Error('after')
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await postgres.allEnded()
    expect(runs).toHaveBeenCalledTimes(1)
    expect(onError.mock.calls).toEqual([[false]])
    expect(await rows()).toBe(1)
  })

  /** Runs a function in a transaction, once, and returns what its handler failed with. */
  async function failureOf(run: (client: PoolClient) => Promise<unknown>): Promise<unknown> {
    await withTable()
    const receiver = postgres.receiver({}, { retry: { attempts: 1 } })
    let failure: unknown
    receiver.onError((error) => {
      failure = error
    })
    receiver.onAny((_, { transaction }) => transaction(run))
    await receiver.ready()
    await accept(receiver, 'media')
    await postgres.allEnded()
    return failure
  }

  test('fails with a clear error when its function has ended the transaction past its client', async () => {
    const failure = await failureOf(async (client) => {
      class Disguised extends Query {
        override submit = (connection: Connection) => {
          Object.assign(this, { text: 'COMMIT; BEGIN' })
          return Query.prototype.submit.call(this, connection)
        }
      }
      await write(client)
      await new Promise((resolve) => client.query(new Disguised('SELECT 1').on('end', resolve)))
    })
    expect(failure).toMatchObject({ code: 'invalid_transaction', message: expect.stringContaining('ended') })
  })

  test.each([
    'COMMIT',
    'ABORT',
    'END WORK',
    'SELECT 1; COMMIT',
    'BEGIN ISOLATION LEVEL SERIALIZABLE',
    'START TRANSACTION READ ONLY',
    "PREPARE TRANSACTION 'mine'",
    "COMMIT PREPARED 'mine'",
    'BEGIN; COMMIT AND CHAIN',
  ])('refuses %s before it is sent', async (sql) => {
    const refusals: unknown[] = []
    const failure = await failureOf(async (client) => {
      await write(client)
      await client.query(sql).catch((error) => refusals.push(error))
      await client.query({ text: sql }).catch((error) => refusals.push(error))
      refusals.push(await new Promise((resolve) => client.query(sql, resolve)))
      throw refusals[0]
    })
    expect(refusals).toMatchObject(Array(3).fill({ code: 'invalid_transaction' }))
    expect(failure).toBe(refusals[0])
    expect(await rows()).toBe(0)
  })

  test('nests transactions in a text with many statements, and as prepared statements', async () => {
    const failure = await failureOf(async (client) => {
      await client.query("BEGIN; INSERT INTO public.row VALUES (1); COMMIT; SELECT 'COMMIT', $$;ROLLBACK$$")
      for (const text of ['BEGIN', 'INSERT INTO public.row VALUES (2)', 'ROLLBACK', 'BEGIN', 'COMMIT'])
        await client.query({ name: text, text })
    })
    expect(failure).toBeUndefined()
    expect(await rows()).toBe(1)
  })

  test('gives its client, as a pool, to one caller at a time', async () => {
    const failure = await failureOf(async (client) => {
      const pool = poolOf(client)
      const transact = async (end: string) => {
        const taken = await pool.connect()
        await taken.query('BEGIN')
        await write(taken)
        await taken.query(end)
        taken.release()
      }
      await Promise.all([transact('COMMIT'), transact('ROLLBACK'), transact('COMMIT'), write(pool as never)])
      await pool.end()
      await write(pool as never)
    })
    expect(failure).toBeUndefined()
    expect(await rows()).toBe(4)
  })

  test('tells a caller that waits for the client of its own transaction', { timeout: 30_000 }, async () => {
    const failure = await failureOf(async (client) => {
      const pool = poolOf(client)
      await pool.connect()
      await write(pool as never)
    })
    expect(failure).toMatchObject({ code: 'invalid_transaction', message: expect.stringContaining('not free') })
  })

  test('takes no more queries through the client once it has ended, so that none is committed outside of it', async () => {
    await withTable()
    const receiver = postgres.receiver({}, { retry: { attempts: 2 } })
    const late: Promise<unknown>[] = []
    const failed = signalled()
    const ends: Record<string, (client: PoolClient, written: Promise<unknown>) => Promise<unknown>> = {
      fails: (_, written) => Promise.all([Promise.reject(new Error('no')), written]),
      'has a failed query': (client, written) => Promise.all([client.query('SELECT nonsense'), written]),
      commits: async () => {},
    }
    receiver.onAny(async ({ mediaId }, { transaction }) => {
      await transaction((client) => {
        const { query } = client
        const written = failed.promise.then(() => Reflect.apply(query, client, ['INSERT INTO public.row VALUES (1)']))
        written.catch(() => {})
        late.push(written)
        return ends[mediaId]?.(client, written)
      })
    })
    await receiver.ready()
    for (const mediaId of Object.keys(ends)) await accept(receiver, mediaId)
    await postgres.allEnded()
    failed.resolve()
    const results = await Promise.allSettled(late)
    expect(results).toHaveLength(5)
    for (const result of results)
      expect(result).toMatchObject({ reason: { name: 'WebhookError', code: 'invalid_transaction' } })
    expect(await rows()).toBe(0)
  })

  test('takes no more queries through the client once its handler has timed out', async () => {
    await withTable()
    const receiver = postgres.receiver({}, { handlerTimeoutMs: 50, retry: { attempts: 1 } })
    const late = signalled<unknown>()
    receiver.onAny((_, { signal, transaction }) =>
      transaction(async (client) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        await write(client).catch(late.resolve)
      }),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    expect(await late.promise).toMatchObject({ code: 'invalid_transaction' })
  })

  test('commits a query that it has sent and not awaited, before it ends', async () => {
    await withTable()
    const receiver = postgres.receiver()
    receiver.onAny((_, { transaction }) =>
      transaction((client) => {
        void client.query('SELECT pg_sleep(0.05)')
        void write(client)
      }),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect(await rows()).toBe(1))
  })

  test('continues after its function has released the client, as query builders do after each query', async () => {
    await withTable()
    const receiver = postgres.receiver({ pool: limitedPool(2) }, { retry: { attempts: 1 } })
    receiver.onAny((_, { transaction }) =>
      transaction(async (client) => {
        await write(client)
        client.release()
        await write(client)
      }),
    )
    await receiver.ready()
    await Promise.all(Array.from({ length: 8 }, (_, index) => accept(receiver, `media ${index}`)))
    await postgres.allEnded()
    expect(await rows()).toBe(16)
  })

  test('continues after its function has ended the client', async () => {
    await withTable()
    const receiver = postgres.receiver({}, { retry: { attempts: 1 } })
    receiver.onAny((_, { transaction }) =>
      transaction(async (client) => {
        await write(client)
        await (client as unknown as Client).end()
      }),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    await postgres.allEnded()
    expect(await rows()).toBe(1)
  })

  test('gives connections back to no pool that a failover has left read-only, and works again after it', async () => {
    await withTable()
    const pool = limitedPool(1)
    const receiver = postgres.receiver({ pool }, { retry: { attempts: 1, baseMs: 1 } })
    const codes: unknown[] = []
    receiver.onError((error) => void codes.push((error as { code?: string }).code))
    const first = await pool.connect()
    await first.query('SET default_transaction_read_only = on')
    first.release()
    receiver.onAny((_, { transaction }) => transaction(write))
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect(await rows()).toBe(1))
    expect(codes).toEqual(['unavailable'])
  })

  test('gives its function a Client of pg', async () => {
    const receiver = postgres.receiver()
    const given = signalled<PoolClient>()
    receiver.onAny((_, { transaction }) => transaction((client) => given.resolve(client)))
    await receiver.ready()
    await accept(receiver, 'media')
    const client = await given.promise
    expect(client).toBeInstanceOf(Client)
    expect(client.escapeIdentifier('a')).toBe('"a"')
  })

  test('records the handler although its function has changed to a role without rights on the inbox', async () => {
    await withTable()
    await postgres.query('CREATE ROLE writer; GRANT INSERT ON public.row TO writer')
    const receiver = postgres.receiver({}, { retry: { attempts: 1 } })
    const errors: unknown[] = []
    receiver.onError((error) => void errors.push(error))
    receiver.onAny((_, { transaction }) =>
      transaction(async (client) => {
        await client.query('SET LOCAL ROLE writer')
        await write(client)
      }),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    await postgres.allEnded()
    expect(errors).toEqual([])
    expect(await rows()).toBe(1)
  })

  test.each([
    ['1 / 0', 'division by zero'],
    ["'no'::uuid", 'invalid input syntax for type uuid: "no"'],
  ])('fails with the error of a deferred trigger that computes %s', async (sql, message) => {
    await postgres.query(`
      CREATE TABLE $schema_failing (n int);
      CREATE FUNCTION $schema_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM ${sql}; RETURN NEW; END $$;
      CREATE CONSTRAINT TRIGGER failing AFTER INSERT ON $schema_failing DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION $schema_fail()`)
    const receiver = postgres.receiver({}, { retry: { attempts: 1 } })
    const failed = signalled<unknown>()
    receiver.onError(failed.resolve)
    receiver.onAny((_, { transaction }) =>
      transaction((client) => client.query(`INSERT INTO ${postgres.schema}_failing VALUES (1)`)),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    expect(await failed.promise).toMatchObject({ message })
  })

  test('gives its slot free when Postgres hangs during the commit', async () => {
    await withTable()
    const receiver = postgres.receiver({ concurrency: 1 }, { handlerTimeoutMs: 200 })
    const attempts: number[] = []
    receiver.onAny(async (_, { attempt, transaction }) => {
      attempts.push(attempt)
      await transaction(async (client) => {
        await write(client)
        if (attempt === 1) postgres.server.pause()
      })
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await sleep(1_000)
    postgres.server.resume()
    await postgres.allEnded()
    expect(await rows()).toBe(1)
  })

  test('keeps its locks no longer than the lease when its process is suspended in it', async () => {
    await withTable()
    await postgres.query('INSERT INTO public.row VALUES (0)')
    const receiver = postgres.receiver({ leaseMs: 300 }, { handlerTimeoutMs: 600_000 })
    const locked = signalled()
    const resume = signalled()
    receiver.onAny((_, { attempt, transaction }) =>
      transaction(async (client) => {
        await client.query('UPDATE public.row SET n = n + 1')
        if (attempt > 1) return
        locked.resolve()
        await resume.promise
      }),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    await locked.promise
    await postgres.query('UPDATE public.row SET n = n + 10')
    resume.resolve()
    await postgres.allEnded()
    expect(await postgres.query('SELECT n FROM public.row')).toEqual([{ n: 11 }])
  })

  test('writes once, and counts no failure, if the pool resets its clients after each use', async () => {
    await withTable()
    const pool = limitedPool(1)
    pool.on('release', (_, client) => void (client as PoolClient).query('DISCARD ALL'))
    const receiver = postgres.receiver({ pool }, { retry: { attempts: 1, baseMs: 1 } })
    const errors: unknown[] = []
    receiver.onError((error) => void errors.push(error))
    receiver.onAny((_, { transaction }) => transaction(write))
    await receiver.ready()
    for (let index = 1; index <= 5; index++) {
      await accept(receiver, `media ${index}`)
      await vi.waitFor(async () => expect(await rows()).toBe(index))
    }
    await postgres.allEnded()
    expect(errors).toEqual([])
  })

  test("leaves the pool's clients as they were, also after failures", async () => {
    await withTable()
    const pool = limitedPool(2)
    const receiver = postgres.receiver({ pool }, { retry: { attempts: 1 } })
    const done = vi.fn()
    receiver.onAny(async ({ mediaId }, { transaction }) => {
      try {
        await transaction(async (client) => {
          if (mediaId.endsWith('1')) await client.query('SELECT nonsense')
          if (mediaId.endsWith('2')) throw new Error('no')
          await write(client)
        })
      } finally {
        done()
      }
    })
    await receiver.ready()
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => accept(receiver, `media ${index % 4} ${index % 3}${index}`)),
    )
    await Promise.all(Array.from({ length: 9 }, (_, index) => accept(receiver, `failing ${index} ${1 + (index % 2)}`)))
    await vi.waitFor(() => expect(done).toHaveBeenCalledTimes(29))
    await receiver.close()
    expect(pool.totalCount).toBeLessThanOrEqual(2)
    expect(pool.idleCount).toBe(pool.totalCount)
    const clients = await Promise.all([pool.connect(), pool.connect()])
    const listeners = clients.map((client) => client.listenerCount('error'))
    const timeouts = await Promise.all(
      clients.map((client) => client.query('SHOW idle_in_transaction_session_timeout')),
    )
    for (const client of clients) client.release()
    expect(listeners).toEqual([0, 0])
    expect(timeouts.map(({ rows: [row] }) => row)).toEqual(
      clients.map(() => ({ idle_in_transaction_session_timeout: '0' })),
    )
  })
})
