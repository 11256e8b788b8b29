import { describe, expectTypeOf, test } from 'vitest'
import {
  type Acknowledgement,
  anyOf,
  basicAuth,
  type ConflictReport,
  createReceiver,
  type EncodingFinishedEvent,
  type ErrorHandler,
  type EventOf,
  type EventType,
  type Handler,
  type Handlers,
  headerToken,
  hmacSignature,
  type IdempotencyStore,
  type Inbox,
  type InboxDefinition,
  type InboxHost,
  lruStore,
  type MediaEvent,
  memoryInbox,
  type PartialFinishedEvent,
  publicKeySignature,
  type Receiver,
  snsSignature,
  standardWebhooks,
  timestampedSignature,
  unverified,
  urlToken,
  type Verifier,
  WebhookError,
  type WebhookErrorCode,
} from '../../src/index.ts'

const verify = unverified()

describe('createReceiver', () => {
  test('needs only a verifier', () => {
    expectTypeOf(createReceiver({ verify })).toEqualTypeOf<Receiver>()
    expectTypeOf(createReceiver({ verify }).receive).returns.toEqualTypeOf<Promise<Acknowledgement>>()
  })

  test('infers the events of its handlers', () => {
    createReceiver({
      verify,
      handlers: {
        'encoding.finished': (event) => expectTypeOf(event).toEqualTypeOf<EncodingFinishedEvent>(),
        'partial.finished': async ({ quality }, { signal }) => {
          expectTypeOf(quality).toEqualTypeOf<string | undefined>()
          expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
        },
      },
    })
  })

  test('tells a hook of a conflict by the names of fields', () => {
    createReceiver({
      verify,
      hooks: {
        conflict: (report) => {
          expectTypeOf(report).toEqualTypeOf<ConflictReport>()
          expectTypeOf(report.fields).toEqualTypeOf<readonly string[]>()
          // @ts-expect-error the report has no values
          report.payload
        },
      },
    })
  })

  test('takes a verifier, a key and a logger of your own', () => {
    const verifier: Verifier = {
      name: 'mine',
      needsBytes: false,
      verify: async () => ({ verified: true, eventId: 'e' }),
    }
    createReceiver({ verify: verifier, eventKey: ({ mediaId }, { headers }) => headers.get('x-id') ?? mediaId })
    createReceiver({
      verify,
      eventKey: { header: 'x-id' },
      logger: console,
      hooks: { delivery: ({ outcome }) => outcome },
    })
  })

  test('does not compile without a verifier', () => {
    // @ts-expect-error unverified() is an explicit choice
    createReceiver({})
    // @ts-expect-error options are required
    createReceiver()
    // @ts-expect-error the verifier may be undefined
    createReceiver({ verify: undefined })
    // @ts-expect-error the verifier has not been made
    createReceiver({ verify: unverified })
    // @ts-expect-error a function is not a verifier
    createReceiver({ verify: () => true })
  })

  test('does not compile with wrong options', () => {
    // @ts-expect-error 'accepted' or 'handled'
    createReceiver({ verify, ack: 'never' })
    createReceiver({ verify, order: 'strict' })
    // @ts-expect-error 'loose' or 'strict'
    createReceiver({ verify, order: true })
    // @ts-expect-error ms are a number
    createReceiver({ verify, handlerTimeoutMs: '30s' })
    // @ts-expect-error bytes are a number
    createReceiver({ verify, maxBodyBytes: '64kb' })
    // @ts-expect-error a number of values
    createReceiver({ verify, maxJsonValues: 'all' })
    // @ts-expect-error an object of options
    createReceiver({ verify, retry: 5 })
    // @ts-expect-error no such option of a retry
    createReceiver({ verify, retry: { times: 5 } })
    // @ts-expect-error a header needs its name: { header }
    createReceiver({ verify, eventKey: 'x-event-id' })
    // @ts-expect-error an event key is text, and not a promise
    createReceiver({ verify, eventKey: async () => 'key' })
    // @ts-expect-error no such option
    createReceiver({ verify, secret: 's' })
    // @ts-expect-error a store belongs to an inbox
    createReceiver({ verify, inbox: lruStore() })
  })

  test('does not compile with wrong handlers', () => {
    // @ts-expect-error unknown types go to onAny
    createReceiver({ verify, handlers: { 'video.deleted': () => {} } })
    // @ts-expect-error a handler is a function
    createReceiver({ verify, handlers: { 'encoding.finished': 'publish' } })
    // @ts-expect-error it is the handler of another event
    createReceiver({ verify, handlers: { 'encoding.finished': (_: PartialFinishedEvent) => {} } })
  })
})

describe('verifiers', () => {
  test('take one secret or a list', () => {
    const secrets: readonly string[] = ['new', 'old']
    expectTypeOf(urlToken({ secret: 's' })).toEqualTypeOf<Verifier>()
    expectTypeOf(anyOf(urlToken({ secret: secrets }), unverified())).toEqualTypeOf<Verifier>()
    headerToken({ secret: secrets, header: 'x-token' })
    basicAuth({ username: 'media', password: secrets })
    hmacSignature({ secret: secrets, header: 'x-signature', timestamp: { header: 'x-timestamp' } })
    publicKeySignature({ publicKey: secrets, header: 'x-s', timestamp: { header: 'x-t' }, signed: '{timestamp}{body}' })
    snsSignature({ topicArn: secrets })
    snsSignature({ topicArn: 'arn', fetch, now: () => 0 })
    snsSignature({ topicArn: 'arn', fetch: (url, { redirect, signal }) => fetch(url, { redirect, signal }) })
    standardWebhooks({ secret: secrets })
    timestampedSignature({ secret: secrets, header: 'mux-signature', time: 't', signature: 'v1' })
  })

  test('take secrets by the name of their owner', () => {
    const secrets: Record<string, readonly string[]> = { acme: ['new', 'old'] }
    for (const secret of [secrets, { acme: 's', zoo: ['new', 'old'] }]) {
      expectTypeOf(urlToken({ secret })).toEqualTypeOf<Verifier>()
      headerToken({ secret, header: 'x-token' })
      basicAuth({ username: 'media', password: secret })
      hmacSignature({ secret, header: 'x-signature' })
      publicKeySignature({ publicKey: secret, header: 'x-signature' })
      standardWebhooks({ secret })
      timestampedSignature({ secret, header: 'mux-signature' })
    }
    // @ts-expect-error an environment variable may be unset
    urlToken({ secret: { acme: process.env['ACME_TOKEN'] } })
    // @ts-expect-error secrets are text
    urlToken({ secret: { acme: 7 } })
  })

  test('take a function of secrets', () => {
    urlToken({ secret: () => 's' })
    headerToken({ secret: async () => ['new', 'old'], header: 'x-token' })
    basicAuth({ username: 'media', password: () => ({ acme: 's' }) })
    publicKeySignature({ publicKey: async () => ['new', 'old'], header: 'x-signature' })
    standardWebhooks({ secret: async (): Promise<string | undefined> => undefined })
    hmacSignature({
      header: 'x-signature',
      secret({ url, headers }) {
        expectTypeOf(url).toEqualTypeOf<string>()
        expectTypeOf(headers.get('x-tenant')).toEqualTypeOf<string | null>()
        return null
      },
    })
    // @ts-expect-error secrets are text
    urlToken({ secret: async () => 7 })
    // @ts-expect-error the bytes of the body are not there yet
    hmacSignature({ header: 'x-signature', secret: ({ body }) => `${body}` })
  })

  test('may name a principal, which handlers get', () => {
    const principal = 'acme'
    const verifier: Verifier = { name: 'mine', needsBytes: false, verify: () => ({ verified: true, principal }) }
    createReceiver({ verify: verifier }).onAny((event, context) => {
      expectTypeOf(context.principal).toEqualTypeOf<string | undefined>()
      expectTypeOf(event.principal).toEqualTypeOf<string | undefined>()
    })
    // @ts-expect-error it is a string
    const wrong: Verifier = { ...verifier, verify: () => ({ verified: true, principal: 7 }) }
    expectTypeOf(wrong).toEqualTypeOf<Verifier>()
  })

  test('do not compile without a secret', () => {
    // @ts-expect-error the secret is missing
    urlToken({})
    // @ts-expect-error the secret is missing
    headerToken({ header: 'x-token' })
    // @ts-expect-error the password is missing
    basicAuth({ username: 'media' })
    // @ts-expect-error the secret is missing
    hmacSignature({ header: 'x-signature' })
    // @ts-expect-error the public key is missing
    publicKeySignature({ header: 'x-signature' })
    // @ts-expect-error the topic is missing
    snsSignature({})
    // @ts-expect-error the secret is missing
    standardWebhooks({})
    // @ts-expect-error the secret is missing
    timestampedSignature({ header: 'mux-signature' })
    // @ts-expect-error an environment variable may be unset
    urlToken({ secret: process.env['WEBHOOK_TOKEN'] })
    // @ts-expect-error secrets are text
    urlToken({ secret: [new Uint8Array()] })
  })

  test('do not compile with wrong options', () => {
    // @ts-expect-error the header is missing
    headerToken({ secret: 's' })
    // @ts-expect-error query or path
    urlToken({ secret: 's', in: 'header' })
    // @ts-expect-error sha1, sha256 or sha512
    hmacSignature({ secret: 's', header: 'x', algorithm: 'md5' })
    // @ts-expect-error hex or base64
    hmacSignature({ secret: 's', header: 'x', encoding: 'base64url' })
    // @ts-expect-error it must cover the body
    hmacSignature({ secret: 's', header: 'x', signed: '{url}' })
    // @ts-expect-error ed25519, rsa-sha256 or ecdsa-sha256
    publicKeySignature({ publicKey: 'k', header: 'x', algorithm: 'rsa-sha1' })
    // @ts-expect-error one signature in the header
    publicKeySignature({ publicKey: 'k', header: 'x', separator: ',' })
    // @ts-expect-error it must cover the body
    publicKeySignature({ publicKey: 'k', header: 'x', signed: '{timestamp}' })
    // @ts-expect-error topics are text
    snsSignature({ topicArn: [7] })
    // @ts-expect-error webhook or svix
    standardWebhooks({ secret: 's', headers: 'x' })
    // @ts-expect-error a timestamp has a header
    hmacSignature({ secret: 's', header: 'x', timestamp: { toleranceSeconds: 60 } })
    // @ts-expect-error seconds are a number
    standardWebhooks({ secret: 's', toleranceSeconds: '5m' })
    // @ts-expect-error the header is missing
    timestampedSignature({ secret: 's' })
    // @ts-expect-error not a list
    anyOf([unverified()])
  })
})

describe('the helper types of handlers', () => {
  test('type handlers that are declared on their own', () => {
    const any: Handler = (event) => expectTypeOf(event).toEqualTypeOf<MediaEvent>()
    const one: Handler<EventOf<'partial.finished'>> = ({ quality }) =>
      expectTypeOf(quality).toEqualTypeOf<string | undefined>()
    const handlers: Handlers = { 'partial.finished': one, 'encoding.failed': any }
    const onError: ErrorHandler = (error) => expectTypeOf(error).toBeUnknown()
    const types: EventType[] = ['encoding.started', 'encoding.finished']
    createReceiver({ verify, handlers }).onAny(any).on('partial.finished', one).on(types, any).onError(onError)
    // @ts-expect-error it handles one event only
    const wrong: Handler = one
    expectTypeOf(wrong).toEqualTypeOf<Handler>()
  })
})

describe('inboxes and stores', () => {
  test('have the types of their contracts', () => {
    expectTypeOf(memoryInbox()).toEqualTypeOf<InboxDefinition>()
    expectTypeOf(memoryInbox({ store: lruStore({ max: 10 }) })).toEqualTypeOf<InboxDefinition>()
    expectTypeOf<InboxDefinition['open']>().toEqualTypeOf<(host: InboxHost) => Inbox>()
    expectTypeOf(createReceiver({ verify }).inbox).toEqualTypeOf<Inbox>()
    // @ts-expect-error the parentheses are missing
    createReceiver({ verify, inbox: memoryInbox })
    // @ts-expect-error an open inbox is not a definition
    createReceiver({ verify, inbox: createReceiver({ verify }).inbox })
    expectTypeOf(lruStore()).toEqualTypeOf<IdempotencyStore>()
    // @ts-expect-error a store has all its methods
    memoryInbox({ store: { claim: () => 'claimed' } })
  })
})

describe('WebhookError', () => {
  test('has one of a closed set of codes', () => {
    const { code } = new WebhookError('unauthorized', 'no')
    expectTypeOf(code).toEqualTypeOf<WebhookErrorCode>()
    // @ts-expect-error there is no such code
    if (code === 'forbidden') return
    // @ts-expect-error there is no such code
    new WebhookError('forbidden', 'no')
  })
})
