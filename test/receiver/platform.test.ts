import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createReceiver, type InboxDefinition, memoryInbox, unverified } from '../../src/index.ts'
import { checkPlatform, type Platform, whyNotExpect } from '../../src/receiver/platform.ts'
import { bytes, freshBody, post, watchedReceiver } from '../adapters/receivers.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { untyped } from '../support/untyped.ts'

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
        "acknowledged: use queueInbox with SQS, or ack: 'handled'",
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
      'two instances can handle the same event, because memoryInbox keeps its keys per instance; ' +
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
      'two instances can handle the same event, because queueInbox keeps its keys per instance: ' +
        'give it a shared store',
    ])
  })
})

describe('on Vercel', () => {
  test('a memory inbox that acknowledges first is a warning, and loses deliveries without waitUntil', () => {
    const { warnings, withoutWait } = check('Vercel', memory)
    expect(warnings).toEqual([expect.stringMatching(/ before memoryInbox has handled its events/)])
    expect(warnings?.[0]).toMatch(/: use queueInbox with a queue such as QStash/)
    expect(withoutWait).toMatch(/memoryInbox loses events it has acknowledged/)
  })
})

describe('on Cloudflare Workers', () => {
  test.each([memory, shared])('a memory inbox that acknowledges first is an error', (inbox) => {
    expect(check('Cloudflare Workers', inbox).error).toMatch(
      /: use durableObjectInbox, or queueInbox with Cloudflare Queues, or ack: 'handled'$/,
    )
  })

  test('a memory inbox that handles first is a warning of doubles and of lost failures', () => {
    const { warnings, withoutWait } = check('Cloudflare Workers', memory, 'handled')
    expect(warnings).toEqual([expect.stringMatching(/^two instances can handle .* some senders never repeat/)])
    expect(withoutWait).toBeUndefined()
  })
})

test.each(['AWS Lambda', 'Cloudflare Workers', 'Vercel', 'Edge Runtime'] as const)(
  'an inbox in a file is an error on %s',
  (platform) => {
    expect(check(platform, file).error).toMatch(/deletes the files/)
  },
)

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

test.each(['Cloud Run', 'Azure Functions', 'Deno Deploy'] as const)(
  'on %s, which may be set to run between requests, memory is a warning, and a delivery is taken without waitUntil',
  (platform) => {
    const { warnings, withoutWait } = check(platform, memory)
    expect(warnings).toEqual([expect.stringMatching(/ can end an instance before .*platform: 'server'$/)])
    expect(withoutWait).toBeUndefined()
    expect(check(platform, file).error).toMatch(/deletes the files .*platform: 'server'$/)
    expect(check(platform, queue)).toEqual(fits)
  },
)

describe('the environment of a developer', () => {
  afterEach(() => vi.unstubAllEnvs())

  test.each<[string, Record<string, string>]>([
    ['vercel env pull wrote', { VERCEL: '1', VERCEL_ENV: 'development' }],
    ['netlify dev sets', { NETLIFY: 'true', NETLIFY_DEV: 'true' }],
    ['func start sets', { FUNCTIONS_WORKER_RUNTIME: 'node', AZURE_FUNCTIONS_ENVIRONMENT: 'Development' }],
    [
      'holds empty values',
      { VERCEL: '', NETLIFY: '', AWS_LAMBDA_FUNCTION_NAME: '', K_SERVICE: '', DENO_DEPLOYMENT_ID: '' },
    ],
  ])('is no platform for functions: what %s', async (_, variables) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
    const { receiver, lines } = watchedReceiver({ verify: unverified() })
    const delivery = { method: 'POST', url: '/', headers: new Headers(), body: freshBody() }
    expect(await receiver.receive(delivery)).toMatchObject({ status: 200 })
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([])
  })

  test.each([
    ['VERCEL', '1', 'Vercel'],
    ['NETLIFY', 'true', 'Netlify'],
    ['K_SERVICE', 'webhooks', 'Cloud Run'],
    ['FUNCTION_TARGET', 'webhooks', 'Cloud Run'],
    ['FUNCTIONS_WORKER_RUNTIME', 'node', 'Azure Functions'],
    ['DENO_DEPLOYMENT_ID', 'abc', 'Deno Deploy'],
  ])('with %s=%s is %s, unless the receiver is told that it is a server', async (name, value, platform) => {
    vi.stubEnv(name, value)
    const warned = watchedReceiver({ verify: unverified() }).lines
    expect(warned).toMatchObject([{ level: 'warn', details: { platform } }])
    const { receiver, lines } = watchedReceiver({ verify: unverified(), platform: 'server' })
    const delivery = { method: 'POST', url: '/', headers: new Headers(), body: freshBody() }
    expect(await receiver.receive(delivery)).toMatchObject({ status: 200 })
    expect(lines).toEqual([])
    receiver.expect('file.received', { then: 'encoding.finished', within: '2 h' }, () => {})
  })

  test('can be overruled: a receiver is told the platform that it runs on', () => {
    expect(() => createReceiver({ verify: unverified(), platform: 'AWS Lambda' })).toThrow(/AWS Lambda stops/)
    expect(() => createReceiver({ verify: unverified(), platform: untyped('lambda') })).toThrow(
      /platform must be one of server, AWS Lambda, /,
    )
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

  test('is known in an Edge Runtime without its environment', async () => {
    vi.stubGlobal('EdgeRuntime', 'edge-runtime')
    onTestFinished(() => void vi.unstubAllGlobals())
    const { receiver, reports } = watchedReceiver({ verify: unverified() })
    receiver.onAny(() => {})
    const delivery = { method: 'POST', url: '/', headers: new Headers(), body: freshBody() }
    expect(await receiver.receive(delivery)).toMatchObject({ status: 500 })
    expect(String(reports[0]?.error ?? reports[0]?.reason)).toMatch(/^Edge Runtime stops an instance/)
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
