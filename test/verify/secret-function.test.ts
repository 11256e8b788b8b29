import { describe, expect, test, vi } from 'vitest'
import {
  basicAuth,
  createReceiver,
  type DeliveryReport,
  type GetSecrets,
  headerToken,
  hmacSignature,
  type Secrets,
  standardWebhooks,
  timestampedSignature,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import {
  deliver,
  type Signer,
  samplePayload,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithTimestampedSignature,
  signWithUrlToken,
} from '../../src/testing/index.ts'
import { smallInbox } from '../receiver/listening-receiver.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'

const secret = 'c2VjcmV0bWFya2Vy'
const other = 'YW5vdGhlcnNlY3JldA=='
const [username, header] = ['media', 'x-credential']

const schemes: [string, (secrets: Secrets | GetSecrets) => Verifier, (secret: string) => Signer][] = [
  ['urlToken', (each) => urlToken({ secret: each }), (each) => signWithUrlToken({ secret: each })],
  [
    'headerToken',
    (each) => headerToken({ secret: each, header }),
    (each) => signWithHeaderToken({ secret: each, header }),
  ],
  [
    'basicAuth',
    (each) => basicAuth({ username, password: each }),
    (each) => signWithBasicAuth({ username, password: each }),
  ],
  [
    'hmacSignature',
    (each) => hmacSignature({ secret: each, header }),
    (each) => signWithHmac({ secret: each, header }),
  ],
  [
    'standardWebhooks',
    (each) => standardWebhooks({ secret: each }),
    (each) => signWithStandardWebhooks({ secret: each }),
  ],
  [
    'timestampedSignature',
    (each) => timestampedSignature({ secret: each, header }),
    (each) => signWithTimestampedSignature({ secret: each, header }),
  ],
]

/** Delivers to a receiver, and returns its answer, its report, and everything that was reported or logged as text. */
async function answerOf(verify: Verifier, sign?: Signer, url = '/hook') {
  const reports: DeliveryReport[] = []
  const { logger, lines } = recordingLogger()
  const hooks = { delivery: (report: DeliveryReport) => void reports.push(report) }
  const receiver = createReceiver({ verify, inbox: smallInbox(), logger, hooks, bodyTimeoutMs: 50 })
  const answer = await deliver(receiver, samplePayload('encoding.finished'), { ...(sign && { sign }), url })
  const seen = JSON.stringify([lines, reports, answer], (_, value) => (value instanceof Error ? `${value}` : value))
  return { ...answer, report: reports[0], seen }
}

describe.each(schemes)('the secret function of %s', (name, build, signer) => {
  test('is asked for each delivery, so that a rotation needs no new receiver', async () => {
    let current: Secrets = secret
    for (const verifier of [build(() => current), build(async () => current)]) {
      current = secret
      expect((await answerOf(verifier, signer(secret))).status).toBe(200)
      expect((await answerOf(verifier, signer(other))).status).toBe(401)
      current = [other, secret]
      expect((await answerOf(verifier, signer(other))).status).toBe(200)
      current = other
      expect((await answerOf(verifier, signer(secret))).status).toBe(401)
    }
  })

  test('gets the URL and the headers, and nothing else', async () => {
    const seen: unknown[] = []
    const verifier = build(({ headers, ...rest }) => {
      seen.push({ type: headers.get('content-type'), ...rest })
      return secret
    })
    await answerOf(verifier, signer(secret), '/hook/acme')
    expect(seen).toEqual([{ type: 'application/json', url: expect.stringMatching(/^\/hook\/acme/) }])
  })

  test('is not asked for a delivery without a credential', async () => {
    const ask = vi.fn(() => secret)
    expect((await answerOf(build(ask))).status).toBe(401)
    expect(ask).not.toHaveBeenCalled()
  })

  test.each<[string, unknown, RegExp]>([
    ['undefined', undefined, /^the secret function of \w+ returned no secret for this delivery$/],
    ['null', null, /returned no secret for this delivery$/],
    ['an empty list', [], /^the secret function of \w+: give a secret/],
    ['a number', 12_345_678, /give a secret/],
    ['true', true, /give a secret/],
    ['a function', () => secret, /give a secret/],
    ['an empty string', '', /is empty/],
    ['a newline at its end', `${secret}\n`, /secret 1 of 1 .*newline/],
    ['a list with undefined', [secret, undefined], /secret 2 of 2 is not a string/],
    ['an object with undefined', { acme: undefined }, /give a secret of acme/],
  ])('that returns %s verifies nothing, and its reason holds no secret', async (_, given, reason) => {
    for (const verifier of [build(untyped(() => given)), build(untyped(async () => given))]) {
      const { status, report, seen } = await answerOf(verifier, signer(secret))
      expect(status).toBe(401)
      expect(report?.reason).toMatch(reason)
      expect(report?.reason).toContain(name)
      expect(seen).not.toContain(secret)
      expect(seen).not.toContain('12345678')
    }
  })

  test.each<[string, GetSecrets]>([
    [
      'throws',
      () => {
        throw new Error('the secret manager is down')
      },
    ],
    ['rejects', () => Promise.reject(new Error('the secret manager is down'))],
  ])('that %s leads to 503, with its error in the report', async (_, ask) => {
    const { status, outcome, body, report } = await answerOf(build(ask), signer(secret))
    expect([status, outcome]).toEqual([503, 'unavailable'])
    expect(body).not.toContain('secret')
    expect(report?.error).toEqual(new Error('the secret manager is down'))
  })

  test('that throws nothing leads to 503, with a reason', async () => {
    const { status, report } = await answerOf(
      build(() => Promise.reject()),
      signer(secret),
    )
    expect(status).toBe(503)
    expect(report?.reason).toBe(`the secret function of ${name} threw`)
  })

  test('that does not answer in time leads to 503', async () => {
    const { status, report } = await answerOf(
      build(() => new Promise<string>(() => {})),
      signer(secret),
    )
    expect(status).toBe(503)
    expect(report?.reason).toBe('the verifier did not answer in time')
  })

  test.each<[string, (secrets: Secrets) => Secrets | GetSecrets]>([
    ['a function', (secrets) => () => secrets],
    ['an async function', (secrets) => async () => secrets],
    ['an object', (secrets) => secrets],
  ])('or %s names the principal', async (_, given) => {
    const verifier = build(given({ acme: ['bmV3ZXIga2V5', secret], zoo: other }))
    const ask = async (each: string) => {
      const principals: (string | undefined)[] = []
      const receiver = createReceiver({ verify: verifier, inbox: smallInbox(), logger: silent })
      receiver.onAny((_event, { principal }) => void principals.push(principal))
      const { status, handled } = await deliver(receiver, samplePayload('encoding.finished'), { sign: signer(each) })
      await handled
      return [status, ...principals]
    }
    expect(await ask('bmV3ZXIga2V5')).toEqual([200, 'acme'])
    expect(await ask(secret)).toEqual([200, 'acme'])
    expect(await ask(other)).toEqual([200, 'zoo'])
    expect(await ask('d3Jvbmcga2V5')).toEqual([401])
  })

  test('is not needed for a secret that is known: no promise is made', async () => {
    const { url, headers, body } = await signer(secret)({
      url: '/hook',
      headers: {},
      body: new TextEncoder().encode('{}'),
    })
    const signed = { url, headers: new Headers(headers), body }
    expect(build(secret).verify(signed)).toMatchObject({ verified: true })
    expect(build(() => secret).verify(signed)).toMatchObject({ verified: true })
  })
})

test('a secret that has the wrong form for its verifier verifies nothing, and is not in the reason', async () => {
  const accented = 'sécret-marker'
  const inHeader = await answerOf(
    headerToken({ secret: () => accented, header }),
    signWithHeaderToken({ secret, header }),
  )
  expect(inHeader.report).toMatchObject({
    status: 401,
    reason: 'headerToken: a secret in a header must be printable ASCII',
  })
  const signed = await answerOf(standardWebhooks({ secret: () => 'no base64!' }), signWithStandardWebhooks({ secret }))
  expect(signed.report).toMatchObject({ status: 401, reason: expect.stringContaining('a secret must be base64') })
  expect(inHeader.seen + signed.seen).not.toMatch(/sécret|no base64!/)
})

test('a function cannot sign', () => {
  expect(() => signWithUrlToken({ secret: () => secret })).toThrow(/signer: give the secret to sign with/)
})
