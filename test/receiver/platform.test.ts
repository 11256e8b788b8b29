import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createReceiver, type InboxDefinition, memoryInbox, unverified } from '../../src/index.ts'
import { checkPlatform, type Platform, whyNotExpect } from '../../src/receiver/platform.ts'
import { bytes, freshBody, post, watchedReceiver } from '../adapters/receivers.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { recordingLogger } from '../support/recording-logger.ts'

type Definition = Omit<InboxDefinition, 'open'>

const memory = { name: 'memoryInbox', storage: 'memory', localKeys: true } as const
const shared = { name: 'memoryInbox', storage: 'memory' } as const
const file = { name: 'sqliteInbox', storage: 'file' } as const
const database = { name: 'postgresInbox', storage: 'database' } as const
const queue = { name: 'queueInbox', storage: 'handed-over' } as const
const localQueue = { ...queue, localKeys: true } as const

/** Checks a setup. Returns the error, the warning, and what would be lost without `waitUntil`. */
function check(platform: Platform, inbox: Definition, ack: 'accepted' | 'handled' = 'accepted') {
  const { logger, lines } = recordingLogger()
  const definition = { ...memoryInbox(), storage: undefined, localKeys: undefined, ...inbox } as InboxDefinition
  try {
    const withoutWait = checkPlatform(definition, ack, logger, platform)
    for (const { details } of lines) expect(details).toEqual({ platform, inbox: inbox.name, ack })
    return { warnings: lines.map(({ message }) => message), withoutWait }
  } catch (error) {
    expect(error).toMatchObject({ name: 'WebhookError', code: 'invalid_option' })
    return { error: (error as Error).message }
  }
}

const fits = { warnings: [], withoutWait: undefined }

describe('on AWS Lambda', () => {
  test.each([memory, shared])('a memory inbox that acknowledges first is an error', (inbox) => {
    expect(check('AWS Lambda', inbox)).toEqual({
      error:
        'createReceiver: AWS Lambda stops an instance after its answer, and memoryInbox loses events it has ' +
        'acknowledged: use queueInbox with SQS',
    })
  })

  test.each(['accepted', 'handled'] as const)('an inbox in a file is an error, acknowledged when %s', (ack) => {
    expect(check('AWS Lambda', file, ack)).toEqual({
      error:
        'createReceiver: AWS Lambda deletes the files of its instances, and with them sqliteInbox: ' +
        'use queueInbox with SQS',
    })
  })

  test('a memory inbox that handles first is a warning of doubles and of lost failures', () => {
    expect(check('AWS Lambda', memory, 'handled').warnings).toEqual([
      'two instances can handle the same event, since memoryInbox remembers keys in one of them; ' +
        'some senders never repeat an event whose handler failed: use queueInbox with SQS',
    ])
    expect(check('AWS Lambda', shared, 'handled').warnings).toEqual([
      'some senders never repeat an event whose handler failed: use queueInbox with SQS',
    ])
  })

  test('an inbox in a database is a warning that a process has to run the handlers', () => {
    expect(check('AWS Lambda', database).warnings).toEqual([
      'the handlers of postgresInbox run only while an instance does: also run a process that stays alive, or use ' +
        'queueInbox with SQS',
    ])
  })

  test('a queue whose keys are known to one process only is a warning', () => {
    expect(check('AWS Lambda', localQueue).warnings).toEqual([
      'two instances can handle the same event, since queueInbox remembers keys in one of them: ' +
        'give it a store that they share',
    ])
  })
})

describe.each([
  ['Cloudflare Workers', 'use durableObjectInbox, or queueInbox with Cloudflare Queues'],
  ['Vercel', 'use queueInbox with a queue such as QStash'],
] as const)('on %s', (platform, fix) => {
  test('a memory inbox that acknowledges first is a warning, and loses deliveries without waitUntil', () => {
    const { warnings, withoutWait } = check(platform, memory)
    expect(warnings).toEqual([expect.stringMatching(/ before memoryInbox has handled its events/)])
    expect(warnings?.[0]).toMatch(new RegExp(`: ${fix}$`))
    expect(withoutWait).toMatch(/memoryInbox loses events it has acknowledged/)
  })

  test('an inbox in a file is an error', () => {
    expect(check(platform, file).error).toMatch(/deletes the files/)
  })
})

test.each(['AWS Lambda', 'Cloudflare Workers', 'Vercel'] as const)(
  'A queue with a shared store fits %s',
  (platform) => {
    expect(check(platform, queue)).toEqual(fits)
    expect(check(platform, { name: 'theirInbox' })).toEqual(fits)
  },
)

test('An inbox in a Durable Object fits Workers', () => {
  const inObject = { name: 'inboxObject', storage: 'database', outlivesRequests: true } as const
  expect(check('Cloudflare Workers', inObject)).toEqual(fits)
})

describe('receiver.expect', () => {
  const expecting = { ...memoryInbox(), ...memory }

  test.each(['Cloudflare Workers', 'Vercel', 'Netlify'] as const)('has no deadlines in memory on %s', (platform) => {
    expect(whyNotExpect(expecting, 'accepted', platform)).toBe(
      `${platform} stops an instance after its answer, and with it the deadlines that memoryInbox keeps: ` +
        'run the receiver in a process that stays alive',
    )
  })

  test.each([
    ['memory in a process that stays alive', expecting, undefined],
    ['memory that outlives its requests', { ...expecting, outlivesRequests: true }, 'Cloudflare Workers'],
    ['a database, which other processes read', { ...expecting, ...database }, 'Cloudflare Workers'],
  ] as const)('has them in %s', (_, inbox, platform) => {
    expect(whyNotExpect(inbox, 'accepted', platform)).toBeUndefined()
  })
})

describe('a receiver on a platform for functions', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('is not made on Lambda if it would lose events, and its inbox is not opened', () => {
    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', '1')
    const open = vi.fn(memoryInbox().open)
    const inbox = { ...memoryInbox(), open }
    expect(() => createReceiver({ verify: unverified(), inbox })).toThrow(/memoryInbox loses events/)
    expect(open).not.toHaveBeenCalled()
  })

  test('expects nothing in memory', () => {
    vi.stubEnv('VERCEL', '1')
    const { receiver } = watchedReceiver({ verify: unverified() })
    const rule = { then: 'encoding.finished', within: '2 h' } as const
    expect(() => receiver.expect('file.received', rule, () => {})).toThrow(
      /^expect: Vercel stops an instance after its answer/,
    )
  })

  test.each(['VERCEL', 'NETLIFY'])(
    'rejects a delivery without waitUntil that its memory would lose, and takes one with it (%s)',
    async (variable) => {
      vi.stubEnv(variable, '1')
      const { receiver, reports } = watchedReceiver({ verify: unverified() })
      const delivery = { method: 'POST', url: '/', headers: new Headers(), body: freshBody() }
      expect(await receiver.receive(delivery)).toMatchObject({ status: 500, outcome: 'internal' })
      expect(reports[0]?.reason).toMatch(
        /memoryInbox loses events it has acknowledged: use queueInbox .*, or pass wait/,
      )
      expect(await receiver.receive({ ...delivery, waitUntil() {} })).toMatchObject({ status: 200 })
    },
  )

  test('takes a look-up only with waitUntil if its memory would lose it', async () => {
    vi.stubEnv('VERCEL', '1')
    const { receiver } = watchedReceiver({ verify: unverified() })
    receiver.onAny(() => {})
    const found = { type: 'encoding.finished', mediaId: 'm1' } as const
    await expect(receiver.accept(found)).rejects.toThrow(/^accept: Vercel stops .*, or pass waitUntil$/)
    expect(await receiver.accept(found, { waitUntil() {} })).toBe('accepted')
  })

  test.each(Object.keys(mounts) as AdapterName[])('says so behind each adapter (%s)', async (adapter) => {
    vi.stubEnv('VERCEL', '1')
    const { receiver, lines } = watchedReceiver(bytes)
    const { url, close } = await mounts[adapter](receiver)
    onTestFinished(() => close())
    expect(await post(url, bytes)).toMatchObject({ status: 500, body: { code: 'internal' } })
    const message = expect.stringMatching(/^delivery rejected: Vercel stops an instance after its answer/)
    expect(lines).toContainEqual(expect.objectContaining({ level: 'error', message }))
  })
})
