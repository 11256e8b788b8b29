import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, type InboxDefinition, unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { future, upgraded } from '../inbox/unreadable.suite.ts'
import { until } from '../support/inbox.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { silent } from '../support/silent.ts'
import { finish } from './program.ts'

interface Place {
  readonly target: string
  readonly flags: readonly string[]
  readonly inbox: () => InboxDefinition
  /** `true` if it remembers events that were handled. */
  readonly remembers: boolean
}

/** A receiver of which one handler fails until it is fixed. */
async function openShop({ inbox: definition }: Place) {
  const receiver = createReceiver({
    verify: unverified(),
    inbox: definition(),
    logger: silent,
    retry: { attempts: 2, baseMs: 1 },
  })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  await receiver.ready()
  const published: string[] = []
  let isFixed = false
  receiver.onAny(() => {}, { name: 'index' })
  receiver.on(
    'encoding.finished',
    ({ mediaId, title }) => {
      if (!isFixed) throw new TypeError(`no room\nfor ${title}`)
      published.push(mediaId)
    },
    { name: 'publish' },
  )
  const fix = () => {
    isFixed = true
  }
  return { receiver, published, fix }
}

/** Reads the last command that the program tells its user to type, as a shell does. */
async function commandIn(output: string): Promise<readonly string[]> {
  const line = output.split('\n').findLast((each) => each.startsWith('  media-webhooks inbox '))
  const { stdout } = await promisify(execFile)('bash', ['-c', `printf '%s\\0' ${line}`])
  const [program, ...args] = stdout.split('\0').slice(0, -1)
  expect(program).toBe('media-webhooks')
  return args
}

/** Runs a command that has to succeed, and returns what it prints. */
async function print(args: readonly string[]): Promise<string> {
  const { code, output, errors } = await finish(args)
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  return output
}

function checkStory(makePlace: () => Promise<Place>): void {
  test('tells why an event of a media item was not handled, and replays it once the handler is fixed', async () => {
    const place = await makePlace()
    const { receiver, published, fix } = await openShop(place)
    for (const type of ['file.received', 'encoding.finished'] as const)
      await deliver(receiver, samplePayload(type, { media_id: 'a film', title: "it's \u001b[31mred" }))
    await until(async () => (await receiver.inbox.stats()).deadLetters === 1)

    const story = await print(['inbox', place.target, 'media', 'a film', ...place.flags])
    if (place.remembers) expect(story).toMatch(/ handled {6}file\.received {6}a film {2}1 /)
    expect(story).toMatch(/ dead letter {2}encoding\.finished {2}a film {2}2 /)
    expect(story).toContain("\n  publish: TypeError: no room for it's \\u{1b}[31mred\n")
    expect(story).toContain(
      place.remembers ? '\n1 of 2 events is not handled yet' : '\n1 of 1 event is not handled yet',
    )

    const shown = await print(await commandIn(story))
    expect(shown).toMatch(/^state +dead letter$/m)
    expect(shown).toMatch(/^media +'a film'$/m)
    expect(shown).toMatch(/^attempts +2$/m)
    expect(shown).toMatch(/^completed +index$/m)
    expect(shown.match(/^ {2}[12] {2}\d{4}-.* ago\)\n {5}publish: TypeError: no room for it's /gm)).toHaveLength(2)
    expect(shown).toContain(`\n  "title": "it's \\u001b[31mred",\n`)

    fix()
    const replayed = await print(await commandIn(shown))
    expect(replayed).toMatch(/^1 dead letter replayed: /)
    await vi.waitUntil(() => published.length === 1)
    await until(async () => (await receiver.inbox.stats()).running === 0)
    const after = await finish(['inbox', place.target, 'media', 'a film', ...place.flags])
    if (place.remembers)
      expect(after).toMatchObject({ code: 0, output: expect.stringMatching(/\n2 events, handled\n$/) })
    else
      expect(after.errors).toMatch(/^no event of the media item 'a film' is known: .*\(this inbox forgets those\)\n$/)
    expect(published).toEqual(['a film'])
  })

  test('finds the unreadable delivery of a media item, and replays it once the version that can parse it is deployed', async () => {
    const place = await makePlace()
    const { receiver, published, fix } = await openShop(place)
    fix()
    expect((await deliver(receiver, future)).status).toBe(400)
    const story = await print(['inbox', place.target, 'media', 'm1', ...place.flags])
    expect(story).toMatch(/^Unreadable deliveries that mention it:\n/)
    const shown = await print(await commandIn(story))
    expect(shown).toMatch(/^reason +field media_id: expected a non-empty string$/m)
    expect(shown).toContain(future)
    await upgraded(async () => {
      await print(await commandIn(shown))
      await vi.waitUntil(() => published.length === 1)
    })
    expect(published).toEqual(['m1'])
  })
}

describe('the story of an event in SQLite', () => {
  checkStory(async () => {
    const path = await freshPath()
    return { target: path, flags: [], inbox: () => sqliteInbox({ path }), remembers: true }
  })
})

describe.skipIf(!findPostgres())('the story of an event in Postgres', () => {
  let server: PostgresServer
  let schemas = 0
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  checkStory(async () => {
    const schema = `story ${++schemas}`
    const inbox = () => postgresInbox({ connection: server.url, schema })
    return { target: server.url, flags: ['--schema', schema], inbox, remembers: true }
  })
})

describe.skipIf(!findRedis())('the story of an event in Redis', () => {
  let server: RedisServer
  let queues = 0
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server?.remove())

  checkStory(async () => {
    const queue = `story ${++queues}`
    const inbox = () => bullmqInbox({ connection: server.url, queue })
    return { target: server.url, flags: ['--queue', queue], inbox, remembers: false }
  })
})
