import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { defaultTables } from './defaults/tables.ts'

const root = new URL('../../', import.meta.url)

/** The interface of the options of each function whose options are in a table. */
const interfaces: Readonly<Record<string, readonly [path: string, name: string]>> = {
  createReceiver: ['src/receiver/options.ts', 'ReceiverOptions'],
  'receiver.close': ['src/inbox/inbox.ts', 'CloseOptions'],
  memoryInbox: ['src/inbox/memory.ts', 'MemoryInboxOptions'],
  lruStore: ['src/idempotency/lru.ts', 'LruStoreOptions'],
  sqliteInbox: ['src/inbox/sqlite.ts', 'SqliteInboxOptions'],
  postgresInbox: ['src/inbox/postgres.ts', 'PostgresInboxOptions'],
  bullmqInbox: ['src/inbox/bullmq.ts', 'BullmqInboxOptions'],
  queueInbox: ['src/inbox/queue.ts', 'QueueInboxOptions'],
  redisStore: ['src/idempotency/redis.ts', 'RedisStoreOptions'],
  createClient: ['src/service/client/options.ts', 'ClientOptions'],
  createEmulator: ['src/service/emulator/service/options.ts', 'EmulatorOptions'],
  hmacSignature: ['src/verify/hmac-signature.ts', 'HmacSignatureOptions'],
  timestampedSignature: ['src/verify/timestamped-signature.ts', 'TimestampedSignatureOptions'],
}

/** The interface that others extend. */
const inherited: typeof interfaces = { sqliteInbox: ['src/inbox/sqlite/database.ts', 'InboxLimits'] }

/** Options that the tables leave out: the clocks, which are for tests, and two that have no default. */
const withoutRow = new Set(['now', 'clock', 'secret', 'header'])

/** Reads the default that the docstring of each option names, such as `10_000`. */
function docstringsOf(path: string, name: string): readonly (readonly [option: string, text: string | undefined])[] {
  const file = ts.createSourceFile(path, readFileSync(new URL(path, root), 'utf8'), ts.ScriptTarget.Latest, true)
  const isWanted = (node: ts.Statement) => ts.isInterfaceDeclaration(node) && node.name.text === name
  const { members } = file.statements.find(isWanted) as ts.InterfaceDeclaration
  return members.map((member) => {
    const tag = ts.getJSDocTags(member).find(({ tagName }) => tagName.text === 'defaultValue')
    return [(member.name as ts.Identifier).text, ts.getTextOfJSDocComment(tag?.comment)] as const
  })
}

/** The value that a docstring names. Words are `undefined`. */
function namedBy(text = ''): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  const { number, quoted } = /^(?<number>\d[\d_]*)|^['`](?<quoted>[^'`]+)['`]$/.exec(text)?.groups ?? {}
  return number === undefined ? quoted : Number(number.replaceAll('_', ''))
}

describe.each(Object.entries(interfaces))('The options of %s', (of, [path, name]) => {
  const rows = defaultTables.filter((table) => table.of === of).flatMap((table) => table.rows)
  const documented = new Map(rows.flatMap(({ options, value }) => options.map((option) => [option, value])))
  const { [of]: base } = inherited
  const docstrings = [...docstringsOf(path, name), ...(base === undefined ? [] : docstringsOf(...base))]

  test('are those of the docs', () => {
    const options = docstrings.map(([option]) => option).filter((option) => !withoutRow.has(option))
    expect(options.toSorted()).toEqual([...documented.keys()].toSorted())
  })

  test('have the defaults of the docs in their docstrings', () => {
    const named = docstrings.map(([option, text]) => [option, namedBy(text)]).filter(([, value]) => value !== undefined)
    expect(named).toEqual(named.map(([option]) => [option, documented.get(option as string)]))
  })
})

test('The docstrings of the schedule of retries name the defaults of the docs', () => {
  const named = docstringsOf('src/handlers/retry.ts', 'RetryOptions').map(([option, text]) => [option, namedBy(text)])
  const rows = defaultTables.find(({ of }) => of === 'createReceiver')?.rows ?? []
  expect(Object.fromEntries(named)).toEqual(rows.find(({ options }) => options[0] === 'retry')?.value)
})
