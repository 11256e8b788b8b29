import { describe, expect, test } from 'vitest'
import { options } from './defaults/source.ts'
import { defaultTables } from './defaults/tables.ts'

// A default stands in the code, in the docstring of its option, and often in a table of the docs. The code and the tables
// are compared with the docstring.

/** Options whose default is no value in the code, beside the option. */
const setElsewhere = [
  // Inboxes look for the other value.
  'InboxHost.ack',
  'InboxHost.order',
  // What these are passed to has the default: `encodePayload`, and the page of any list.
  'DeliverOptions.format',
  'OperationQuery.limit',
  // The inbox makes claims of its own.
  'MemoryInboxOptions.store',
  // The service has these.
  'ListAllWebhooksParams.orderBy',
  'ListAllWebhooksParams.sortBy',
  'ListWebhooksParams.limit',
  'ListWebhooksParams.offset',
]

const withValue = options.filter(({ named }) => named !== undefined)

test.each(withValue.filter(({ name }) => !setElsewhere.includes(name)))(
  'the code sets $name to $named, as its docstring says',
  ({ named, inCode }) => {
    expect([...inCode]).toEqual([named])
  },
)

test('the code sets no default for the others', () => {
  const unset = withValue.filter(({ inCode }) => inCode.size === 0)
  expect(unset.map(({ name }) => name).toSorted()).toEqual(setElsewhere.toSorted())
})

/** The interfaces of the options in each table. */
const interfaces: Readonly<Record<string, readonly string[]>> = {
  createReceiver: ['ReceiverOptions'],
  'receiver.close': ['CloseOptions'],
  memoryInbox: ['MemoryInboxOptions'],
  lruStore: ['LruStoreOptions'],
  sqliteInbox: ['SqliteInboxOptions', 'InboxLimits'],
  postgresInbox: ['PostgresInboxOptions'],
  bullmqInbox: ['BullmqInboxOptions'],
  queueInbox: ['QueueInboxOptions'],
  redisStore: ['RedisStoreOptions'],
  durableObjectInbox: ['DurableObjectInboxOptions'],
  inboxObject: ['InboxLimits'],
  durableObjectStore: ['DurableObjectStoreOptions'],
  createClient: ['ClientOptions'],
  createEmulator: ['EmulatorOptions'],
  hmacSignature: ['HmacSignatureOptions', 'SignatureHeaderOptions'],
  'hmacSignature.timestamp': ['SignatureHeaderOptions.timestamp'],
  timestampedSignature: ['TimestampedSignatureOptions'],
}

/** Options that the tables leave out: the clocks, which are for tests, and two that have no default. */
const withoutRow = ['now', 'clock', 'secret', 'header']

/** The options of an interface, with the defaults that their docstrings name. */
function docstringsOf(owner: string): Record<string, unknown> {
  const own = options.filter(({ name }) => name.slice(0, name.lastIndexOf('.')) === owner)
  return Object.fromEntries(own.map(({ name, named }) => [name.slice(owner.length + 1), named]))
}

test('every table of defaults is compared', () => {
  expect(defaultTables.map(({ of }) => of).toSorted()).toEqual(Object.keys(interfaces).toSorted())
})

describe.each(defaultTables)('The table of $of', ({ of, rows }) => {
  test('has every option, with the default of its docstring', () => {
    const docstrings = Object.assign({}, ...(interfaces[of] ?? []).map(docstringsOf))
    if (of === 'createReceiver') docstrings.retry = docstringsOf('RetryOptions')
    for (const name of withoutRow) delete docstrings[name]
    const documented = rows.flatMap(({ options, value }) => options.map((option) => [option, value] as const))
    expect(Object.fromEntries(documented)).toStrictEqual(docstrings)
  })
})
