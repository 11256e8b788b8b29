import fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { fastifyReceiver } from '../adapters/fastify.ts'
import { fetchHandler } from '../adapters/fetch.ts'
import { closeServer } from '../adapters/node.ts'
import { redisStore } from '../src/idempotency/redis.ts'
import { openInboxQueue } from '../src/inbox/bullmq/inspection.ts'
import { bullmqInbox } from '../src/inbox/bullmq.ts'
import { durableObjectStore } from '../src/inbox/durable-object/cloudflare.ts'
import { durableObjectInbox, inboxObject } from '../src/inbox/durable-object.ts'
import { pgliteInbox } from '../src/inbox/pglite.ts'
import { migrate, openInboxDatabase } from '../src/inbox/postgres/inspection.ts'
import { postgresInbox } from '../src/inbox/postgres.ts'
import { queueInbox } from '../src/inbox/queue.ts'
import { sqliteInbox } from '../src/inbox/sqlite.ts'
import {
  basicAuth,
  createReceiver,
  headerToken,
  hmacSignature,
  lruStore,
  memoryInbox,
  publicKeySignature,
  snsSignature,
  standardWebhooks,
  timestampedSignature,
  unverified,
  urlToken,
} from '../src/index.ts'
import { dashboard } from '../src/operate/dashboard/index.ts'
import { openTelemetry } from '../src/operate/telemetry/index.ts'
import { createClient, registerWebhook, watchWebhook } from '../src/service/client/index.ts'
import { createEmulator } from '../src/service/emulator/index.ts'
import {
  makeDelivery,
  samplePayload,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithTimestampedSignature,
  signWithUrlToken,
} from '../src/testing/index.ts'
import { receiverWith } from './receiver/listening-receiver.ts'
import { untyped } from './support/untyped.ts'

/** Wrong values by what an option is. */
const wrong = {
  number: ['text', '5', '', Number.NaN, -1, null, true, {}],
  flag: ['no', 'true', 0, 1, Number.NaN, null],
  text: [Number.NaN, -1, null, {}, true],
  word: ['text', '', Number.NaN, -1, null],
  function: ['text', Number.NaN, -1, null, {}],
  object: ['text', Number.NaN, -1, null],
  list: [Number.NaN, -1, null, {}],
}

type Kind = keyof typeof wrong

interface PublicFunction {
  readonly name: string
  /** Calls it with options in place of its own. */
  readonly call: (options: never) => unknown
  /** Options with which it works. */
  readonly valid?: object
  readonly kinds: Readonly<Record<string, Kind>>
}

const receiver = receiverWith()
const queued = () => receiverWith({ inbox: queueInbox({ send: () => {}, store: lruStore({ max: 10 }) }) })
const { inbox } = receiver
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const payload = samplePayload('encoding.finished')
const pool = { connect() {}, options: {}, on() {} }
const namespace = { idFromName() {}, get() {} }
const client = createClient({ accessToken: 'token' }, { baseUrl: 'http://127.0.0.1:1' })
const limits = { concurrency: 'number', maxWaiting: 'number', maxDeadLetters: 'number', ttlMs: 'number' } as const
const signatureHeader = {
  header: 'text',
  algorithm: 'word',
  encoding: 'word',
  prefix: 'text',
  timestamp: 'object',
  signed: 'word',
  now: 'function',
} as const
const hmac = { ...signatureHeader, separator: 'text' } as const
const publicKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'

const functions: readonly PublicFunction[] = [
  {
    name: 'createReceiver',
    call: createReceiver,
    valid: { verify: unverified() },
    kinds: {
      verify: 'object',
      handlers: 'object',
      inbox: 'object',
      ack: 'word',
      handlerTimeoutMs: 'number',
      retry: 'object',
      maxBodyBytes: 'number',
      maxJsonValues: 'number',
      bodyTimeoutMs: 'number',
      eventKey: 'object',
      hooks: 'object',
      telemetry: 'object',
      logger: 'object',
    },
  },
  {
    name: 'createReceiver: retry',
    call: (retry) => createReceiver({ verify: unverified(), retry }),
    kinds: { attempts: 'number', baseMs: 'number', maxMs: 'number' },
  },
  {
    name: 'createReceiver: eventKey',
    call: (eventKey) => createReceiver({ verify: unverified(), eventKey }),
    valid: { header: 'x-event-id' },
    kinds: { header: 'text' },
  },
  {
    name: 'observe',
    call: (hooks) => receiver.observe(hooks),
    kinds: { delivery: 'function', handling: 'function', attempt: 'function' },
  },
  {
    name: 'on',
    call: (options) => receiverWith().on('encoding.finished', () => {}, options),
    kinds: { name: 'text', tests: 'flag', timeoutMs: 'number', retry: 'object' },
  },
  {
    name: 'onAny',
    call: (options) => receiverWith().onAny(() => {}, options),
    kinds: { name: 'text', tests: 'flag', timeoutMs: 'number', retry: 'object' },
  },
  {
    name: 'expect',
    call: (rule) => receiverWith().expect('file.received', rule, () => {}),
    valid: { then: 'encoding.finished', within: '2 h' },
    kinds: { name: 'text', within: 'object', then: 'word' },
  },
  { name: 'accept', call: (options) => receiver.accept(found, options), kinds: { waitUntil: 'function' } },
  { name: 'handle', call: (options) => queued().handle({}, options), kinds: { attempt: 'number' } },
  { name: 'close', call: (options) => receiverWith().close(options), kinds: { timeoutMs: 'number' } },
  {
    name: 'closeServer',
    call: (options) => closeServer({ close: (closed) => closed() }, receiverWith(), options),
    kinds: { timeoutMs: 'number' },
  },
  { name: 'fetchHandler', call: (options) => fetchHandler(receiver, options), kinds: { waitUntil: 'function' } },
  {
    name: 'fastifyReceiver',
    call: async (options) => fastify().register(fastifyReceiver, options).ready(),
    valid: { receiver, url: '/' },
    kinds: { receiver: 'object', url: 'text', closeTimeoutMs: 'number' },
  },
  {
    name: 'deadLetters.list',
    call: (options) => inbox.deadLetters.list(options),
    kinds: { limit: 'number', offset: 'number' },
  },
  {
    name: 'deadLetters.replayAll',
    call: (options) => inbox.deadLetters.replayAll?.(options),
    kinds: { type: 'text', since: 'object', perSecond: 'number', onProgress: 'function', signal: 'object' },
  },
  {
    name: 'events.list',
    call: (query) => inbox.events?.list(query),
    kinds: { state: 'word', type: 'text', mediaId: 'text', order: 'word', limit: 'number', cursor: 'text' },
  },
  {
    name: 'basicAuth',
    call: basicAuth,
    valid: { username: 'u', password: 'p' },
    kinds: { username: 'list', password: 'list' },
  },
  {
    name: 'headerToken',
    call: headerToken,
    valid: { secret, header: 'x-token' },
    kinds: { secret: 'list', header: 'text', prefix: 'text' },
  },
  {
    name: 'hmacSignature',
    call: hmacSignature,
    valid: { secret, header: 'x-s' },
    kinds: { secret: 'list', ...hmac },
  },
  {
    name: 'hmacSignature: timestamp',
    call: (timestamp) => hmacSignature({ secret, header: 'x-s', timestamp }),
    valid: { header: 'x-t' },
    kinds: { header: 'text', toleranceSeconds: 'number' },
  },
  {
    name: 'publicKeySignature',
    call: publicKeySignature,
    valid: { publicKey, header: 'x-s' },
    kinds: { publicKey: 'list', ...signatureHeader },
  },
  {
    name: 'publicKeySignature: timestamp',
    call: (timestamp) => publicKeySignature({ publicKey, header: 'x-s', timestamp }),
    valid: { header: 'x-t' },
    kinds: { header: 'text', toleranceSeconds: 'number' },
  },
  {
    name: 'snsSignature',
    call: snsSignature,
    valid: { topicArn: 'arn:aws:sns:us-east-1:123456789012:media' },
    kinds: { topicArn: 'list', fetch: 'function', now: 'function' },
  },
  {
    name: 'standardWebhooks',
    call: standardWebhooks,
    valid: { secret },
    kinds: { secret: 'list', toleranceSeconds: 'number', now: 'function' },
  },
  {
    name: 'timestampedSignature',
    call: timestampedSignature,
    valid: { secret, header: 'x-s' },
    kinds: {
      secret: 'list',
      header: 'text',
      time: 'text',
      signature: 'text',
      toleranceSeconds: 'number',
      now: 'function',
    },
  },
  { name: 'urlToken', call: urlToken, valid: { secret }, kinds: { secret: 'list', in: 'word', parameter: 'text' } },
  { name: 'lruStore', call: lruStore, kinds: { max: 'number', ttlMs: 'number', now: 'function' } },
  {
    name: 'redisStore',
    call: redisStore,
    valid: { client: { eval() {}, evalsha() {} } },
    kinds: { client: 'object', prefix: 'text', ttlMs: 'number', timeoutMs: 'number' },
  },
  {
    name: 'durableObjectStore',
    call: durableObjectStore,
    valid: { namespace },
    kinds: { namespace: 'object', shards: 'number', ttlMs: 'number', timeoutMs: 'number' },
  },
  {
    name: 'memoryInbox',
    call: memoryInbox,
    kinds: {
      store: 'object',
      leaseMs: 'number',
      concurrency: 'number',
      maxWaiting: 'number',
      maxDeadLetters: 'number',
    },
  },
  { name: 'sqliteInbox', call: sqliteInbox, valid: { path: 'inbox.db' }, kinds: { path: 'text', ...limits } },
  {
    name: 'postgresInbox',
    call: postgresInbox,
    valid: { pool },
    kinds: {
      pool: 'object',
      schema: 'text',
      handles: 'flag',
      concurrency: 'number',
      leaseMs: 'number',
      ttlMs: 'number',
      timeoutMs: 'number',
      listen: 'flag',
    },
  },
  {
    name: 'pgliteInbox',
    call: pgliteInbox,
    valid: { db: { execProtocolRaw() {}, runExclusive() {} } },
    kinds: {
      db: 'object',
      schema: 'text',
      concurrency: 'number',
      leaseMs: 'number',
      ttlMs: 'number',
      timeoutMs: 'number',
    },
  },
  {
    name: 'bullmqInbox',
    call: bullmqInbox,
    valid: { connection: 'redis://127.0.0.1:1' },
    kinds: {
      queue: 'text',
      handles: 'flag',
      concurrency: 'number',
      leaseMs: 'number',
      ttlMs: 'number',
      timeoutMs: 'number',
    },
  },
  {
    name: 'queueInbox',
    call: queueInbox,
    valid: { send() {}, store: lruStore({ max: 10 }) },
    kinds: { send: 'function', store: 'object', leaseMs: 'number', sendTimeoutMs: 'number' },
  },
  {
    name: 'durableObjectInbox',
    call: durableObjectInbox,
    valid: { namespace },
    kinds: { namespace: 'object', shards: 'number', timeoutMs: 'number' },
  },
  { name: 'inboxObject', call: (options) => inboxObject(() => receiver, options), kinds: limits },
  { name: 'openInboxDatabase', call: openInboxDatabase, valid: { pool }, kinds: { schema: 'text' } },
  { name: 'migrate', call: (options) => migrate('postgres://127.0.0.1:1/none', options), kinds: { schema: 'text' } },
  {
    name: 'openInboxQueue',
    call: openInboxQueue,
    valid: { connection: 'redis://127.0.0.1:1' },
    kinds: { queue: 'text' },
  },
  {
    name: 'openTelemetry',
    call: openTelemetry,
    kinds: { receiver: 'text', attributes: 'function', tracerProvider: 'object', meterProvider: 'object' },
  },
  {
    name: 'dashboard',
    call: (options) => dashboard(receiver, options),
    valid: { authorize: () => true },
    kinds: { path: 'text', authorize: 'function', origin: 'text', redact: 'function' },
  },
  {
    name: 'createClient',
    call: (options) => createClient({ accessToken: 'token' }, options),
    valid: { baseUrl: 'http://127.0.0.1:1' },
    kinds: { baseUrl: 'text', timeoutMs: 'number', retries: 'number', fetch: 'function' },
  },
  {
    name: 'registerWebhook',
    call: (registration) =>
      registerWebhook(
        client,
        receiverWith().onAny(() => {}),
        registration,
      ),
    valid: { url: 'http://127.0.0.1:1' },
    kinds: { url: 'text', name: 'text' },
  },
  {
    name: 'watchWebhook',
    call: watchWebhook,
    valid: { client, receiver, webhook: { id: 'a', url: 'b' } },
    kinds: { client: 'object', receiver: 'object', webhook: 'object', everyMs: 'number', onProblem: 'function' },
  },
  {
    name: 'createEmulator',
    call: createEmulator,
    kinds: {
      port: 'number',
      profile: 'word',
      timeScale: 'number',
      publicKey: 'text',
      secretKey: 'text',
      accessToken: 'text',
      maxWaiting: 'number',
      maxRecords: 'number',
      clock: 'function',
    },
  },
  {
    name: 'makeDelivery',
    call: (options) => makeDelivery(payload, options),
    kinds: { sign: 'function', format: 'word', url: 'text', headers: 'object' },
  },
  {
    name: 'signWithBasicAuth',
    call: signWithBasicAuth,
    valid: { username: 'u', password: 'p' },
    kinds: { username: 'list' },
  },
  {
    name: 'signWithHeaderToken',
    call: signWithHeaderToken,
    valid: { secret, header: 'x-t' },
    kinds: { prefix: 'text' },
  },
  { name: 'signWithHmac', call: signWithHmac, valid: { secret, header: 'x-s' }, kinds: hmac },
  { name: 'signWithStandardWebhooks', call: signWithStandardWebhooks, valid: { secret }, kinds: { now: 'function' } },
  {
    name: 'signWithTimestampedSignature',
    call: signWithTimestampedSignature,
    valid: { secret, header: 'x-s' },
    kinds: { time: 'text', signature: 'text', now: 'function' },
  },
  { name: 'signWithUrlToken', call: signWithUrlToken, valid: { secret }, kinds: { in: 'word', parameter: 'text' } },
]

const found = { type: 'encoding.finished', mediaId: 'a' } as const

const invalid = expect.objectContaining({ name: 'WebhookError', code: 'invalid_option' })

/** Some throw, some reject: a caller that awaits sees no difference. */
const outcome = async ({ call }: PublicFunction, options: unknown) => call(untyped(options))

describe.each(functions)('$name', (each) => {
  test.each(['text', Number.NaN, -1, null, []])('rejects %o in place of its options', async (options) => {
    await expect(outcome(each, options)).rejects.toEqual(invalid)
  })

  test('rejects an option that it does not have', async () => {
    for (const name of Object.keys(each.kinds))
      await expect(outcome(each, { ...each.valid, [`${name}s`]: () => {} })).rejects.toEqual(invalid)
  })

  test.each(Object.entries(each.kinds).flatMap(([name, kind]) => wrong[kind].map((value) => [name, value])))(
    'rejects %s: %o',
    async (name, value) => {
      await expect(outcome(each, { ...each.valid, [name as string]: value })).rejects.toEqual(invalid)
    },
  )
})

describe('a method with other arguments', () => {
  test.each([undefined, 'text', Number.NaN, -1, null])('off rejects %o', (value) => {
    expect(() => receiver.off(untyped(value))).toThrow(invalid)
    expect(() => receiver.off(untyped(value), () => {})).toThrow(invalid)
    expect(() => receiver.off('encoding.finished', untyped(value))).toThrow(invalid)
  })

  test('close handles what waits before it rejects', async () => {
    const handled: string[] = []
    const closing = receiverWith().onAny(({ mediaId }) => void handled.push(mediaId))
    await closing.accept(found)
    await expect(closing.close(untyped('SIGTERM'))).rejects.toEqual(invalid)
    expect(handled).toEqual(['a'])
  })
})
