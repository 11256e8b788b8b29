// Prints the plans of all statements of an inbox on a filled database: `npm run explain -- postgres`.

import { randomUUID } from 'node:crypto'
import { Client, Pool } from 'pg'
import type { InboxHost } from '../src/inbox/inbox.ts'
import { PostgresDatabase } from '../src/inbox/postgres/database.ts'
import { withTables } from '../src/inbox/postgres/dialect.ts'
import { hashKey, hashMedia } from '../src/inbox/postgres/keys.ts'
import { transact, useIndexes } from '../src/inbox/postgres/statements.ts'
import { inline, type PostgresStep, type Query } from '../src/inbox/postgres/step.ts'
import { PostgresSteps } from '../src/inbox/postgres/steps.ts'
import { migrate } from '../src/inbox/postgres.ts'
import type { NewEvent, SettledEvent, Step } from '../src/inbox/sql/database.ts'
import { inspectedInbox } from '../src/inbox/sql/inspection.ts'
import { PostgresServer } from '../test/support/postgres/postgres-server.ts'

const schema = 'media_webhooks'
const owner = randomUUID()

/** 200,000 events of a day in 40,000 lanes: 2,000 wait, 1,000 retry, 1,000 are dead, and 16 lanes are held. */
const fill = `
INSERT INTO ${schema}.process (id, expires_at, lease_ms, handlers)
  SELECT id, now() + interval '1 day', 30000, '[{"name":"handle"}]' FROM unnest(ARRAY['${owner}', gen_random_uuid()::text]::uuid[]) id;
INSERT INTO ${schema}.event (id, hash, media, event, head, received_at, owed, attempts, due_at, delayed_at, ended_at, died_at)
  SELECT n, md5(n::text)::uuid, n % 40000, CASE WHEN n > 196000 THEN payload.json END, format('["encoding.finished","m","%s"]', n)::json,
    now() - (200000 - n) * interval '0.4 s', '["handle"]', (n <= 198000)::int,
    CASE WHEN n BETWEEN 197001 AND 198000 THEN now() + (n - 197500) * interval '1 s' END, CASE WHEN n BETWEEN 197001 AND 198000 THEN now() END,
    CASE WHEN n <= 196000 THEN now() END, CASE WHEN n BETWEEN 196001 AND 197000 THEN now() - n * interval '1 ms' END
  FROM generate_series(1, 200000) n, (SELECT json_build_object('payload', repeat('x', 1000)) AS json) payload;
INSERT INTO ${schema}.lane (media, position, ready_at, owner)
  SELECT media, 198000, CASE WHEN media >= 38000 THEN now() ELSE 'infinity' END, CASE WHEN media >= 39984 THEN '${owner}'::uuid END
  FROM generate_series(0, 39999) media;
UPDATE ${schema}.lane SET ready_at = due_at FROM ${schema}.event WHERE event.media = lane.media AND due_at IS NOT NULL;
INSERT INTO ${schema}.expectation (hash, subject, media, rule, began_at, due_at, event, head, owed)
  SELECT md5(n::text)::uuid, md5('s' || n)::uuid, n, '"rule"', 0, now() + (n - 100) * interval '1 s', '{}', '["t","m","k"]', '[]' FROM generate_series(1, 10000) n;
INSERT INTO ${schema}.expectation_end (subject, ended_at) SELECT md5('e' || n)::uuid, 0 FROM generate_series(1, 10000) n;
SELECT setval('${schema}.event_id_seq', 200000);
ANALYZE`

const newEvent = (key: string): NewEvent => ({
  hash: hashKey(key),
  media: hashMedia(key),
  event: '{}',
  head: '["t","m","k"]',
  trace: undefined,
  receivedAt: Date.now(),
  owed: '["handle"]',
  changes: { at: Date.now(), begins: [], ends: [hashKey('ended')] },
})

/** The steps of `Statements`, over rows that are there. */
function steps(of: PostgresSteps): Record<string, Step<unknown>> {
  const media = '39999'
  const lane = { media, turn: 0, first: 198_000, last: 199_999, latestAt: 0, awaits: true, clear: false }
  const event: SettledEvent = {
    ...{ media, id: 199_999, kind: 'end', attempts: 1, counts: true, delayMs: 0, completed: ['handle'] },
    ...{ failed: undefined, late: false, awaits: [] },
  }
  const handlers = [{ name: 'handle' }]
  return {
    accept: of.accept([{ ...newEvent('new'), changes: undefined }]),
    'accept with expectations': of.accept([newEvent('newer')]),
    overdue: of.overdue(100),
    fire: of.fire([{ hash: hashKey('fired'), media, place: { ...newEvent('fired'), media } }]),
    claim: of.claim({ owner, lanes: 32, marked: 1, waits: true }),
    settle: of.settle(owner, [{ ...lane, release: { hasMore: false, restMs: undefined } }], [event]),
    count: of.count({ owner, media, turn: 0, id: 199_999 }, 0, 1),
    join: of.join(randomUUID(), handlers),
    renew: of.renew(owner, undefined),
    'take over': of.takeOver(),
    adopt: of.adopt(owner, [media]),
    'claim awaited': of.claimAwaited(owner, ['"handle"'], 32),
    publish: of.publish(owner, handlers, [{ name: 'former' }]),
    handlers: of.handlers(),
    replay: of.replay([{ id: 196_500, media: '36500' }]),
    keep: of.keep({ hash: hashKey('unreadable'), head: '{}', body: new Uint8Array() }),
    replace: of.replace(hashKey('unreadable'), [newEvent('read')]),
    retry: of.retry(hashKey('197900')),
    expire: of.expire(),
    leave: of.leave(owner, handlers),
  }
}

const isPlanned = (sql: string): boolean => /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b/i.test(sql)

const sqlOf = (part: string | Query): string => {
  const { text, values }: Query = typeof part === 'string' ? { text: part, values: [] } : part
  return inline({ text: withTables(text, schema), values })
}

/** Runs a statement, and prints its plan. */
async function explain(client: Client, sql: string): Promise<void> {
  console.log(`\n${sql.trim().replaceAll(/^/gm, '  ')}\n`)
  const { rows } = await client.query({ text: `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) ${sql}`, rowMode: 'array' })
  for (const [line] of rows) console.log(`    ${line}`)
}

async function explainStep(client: Client, name: string, { parts }: PostgresStep<unknown>): Promise<void> {
  console.log(`\n# ${name}`)
  await client.query('BEGIN')
  const texts = parts.flatMap((part) => sqlOf(part).split(/;\n/))
  for (const text of texts.filter((each) => !/^(BEGIN|COMMIT)/.test(each)))
    await (isPlanned(text) ? explain(client, text) : client.query(text))
  await client.query('ROLLBACK')
}

/** What pages and the command line ask. */
async function explainReads(client: Client, pool: Pool): Promise<void> {
  const database = PostgresDatabase.inspected(pool, schema, 60_000)
  const read = async (sql: string, values: readonly unknown[] = []) => {
    const text = sqlOf({ text: sql, values })
    await explain(client, text)
    return (await client.query(text)).rows
  }
  const inbox = inspectedInbox(Object.assign(Object.create(database), { read }), { close() {} })
  const reads: Record<string, () => unknown> = {
    'the counts': () => inbox.stats(),
    'the newest events': () => inbox.events.list(),
    'events of a type': () => inbox.events.list({ type: 'encoding.finished', order: 'oldest' }),
    'waiting events': () => inbox.events.list({ state: 'waiting' }),
    'retrying events': () => inbox.events.list({ state: 'retrying' }),
    'handled events': () => inbox.events.list({ state: 'handled' }),
    'the history of a media item': () => inbox.history('media'),
    'an event': () => inbox.events.get('key'),
    'outcomes of events': () => inbox.events.outcomes(['key']),
    'dead letters': () => inbox.deadLetters.list({ offset: 500 }),
    'keys of dead letters': () => inbox.deadLetters.keys(),
    'open expectations': () => inbox.expected(),
  }
  for (const [name, run] of Object.entries(reads)) {
    console.log(`\n# ${name}`)
    await client.query(`BEGIN; ${useIndexes}`)
    await run()
    await client.query('COMMIT')
  }
}

const [kind] = process.argv.slice(2)
if (kind !== 'postgres') throw new Error('npm run explain -- postgres')
const server = await PostgresServer.start()
const client = new Client(server.url)
const pool = new Pool({ connectionString: server.url })
try {
  await migrate(server.url)
  await client.connect()
  await client.query(fill)
  for (const order of ['loose', 'strict'] satisfies InboxHost['order'][]) {
    console.log(`\n## ${order} order`)
    const isStrict = order === 'strict'
    const all = steps(new PostgresSteps({ isStrict, leaseMs: 30_000, ttlMs: 86_400_000 }))
    for (const [name, step] of Object.entries(all)) await explainStep(client, name, step as PostgresStep<unknown>)
  }
  console.log('\n# the end of a transaction')
  await client.query(`BEGIN; SET LOCAL media_webhooks.owner = '${owner}'`)
  await explain(client, sqlOf({ text: transact, values: ['39999', owner, 0, 'handle', 199_999] }))
  await client.query('ROLLBACK')
  await explainReads(client, pool)
} finally {
  await Promise.all([client.end(), pool.end()])
  await server.remove()
}
