import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Delivery, type HmacSignatureOptions, hmacSignature, type Verifier } from '../../src/index.ts'
import { makeDelivery, samplePayload, signWithHmac } from '../../src/testing/index.ts'
import { body, deliveryWith, exactHeaders, messageOfBuild, verdict } from './verdict.ts'

const secret = 'a shared secret'
const header = 'X-Signature'
const plain = { secret, header }
const timestamp = { header: 'x-timestamp' }
const listed = { ...plain, separator: ',' }

const hex = createHmac('sha256', secret).update(body).digest('hex')
const base64 = createHmac('sha256', secret).update(body).digest('base64')
const signed = (value: string) => deliveryWith({ [header]: value })

const schemes: [what: string, options: HmacSignatureOptions][] = [
  ['SHA-256 in hex', plain],
  ['SHA-1', { ...plain, algorithm: 'sha1' }],
  ['SHA-512', { ...plain, algorithm: 'sha512' }],
  ['base64', { ...plain, encoding: 'base64' }],
  ['a prefix', { ...plain, prefix: 'sha256=' }],
  ['a separator', { ...plain, separator: ' ' }],
  ['a signed timestamp', { ...plain, timestamp }],
  ['an unsigned timestamp', { ...plain, timestamp, signed: '{body}' }],
  ['a template', { ...plain, timestamp, signed: 'v0:{timestamp}:{url}{body}' }],
  ['the fields of a form', { ...plain, timestamp, signed: '{timestamp}{url}{form}' }],
  ['every option', { ...plain, algorithm: 'sha512', encoding: 'base64', prefix: 'v1=', separator: ';', timestamp }],
  ['a secret beyond ASCII', { ...plain, secret: 'sécrèt 密 😀' }],
  ['a secret longer than a block', { ...plain, secret: 's'.repeat(200) }],
]

describe.each(schemes)('hmacSignature with %s', (_, options) => {
  const verifier = hmacSignature(options)
  const sign = (by = options) => makeDelivery(samplePayload('encoding.finished'), { sign: signWithHmac(by) })

  test('verifies what its signer makes', async () => {
    expect(await verdict(verifier, await sign())).toBe('verified')
  })

  test('does not verify a body in which one bit changed', async () => {
    const delivery = await sign()
    const altered = Uint8Array.from(delivery.body as Uint8Array)
    altered[20] = (altered[20] as number) ^ 1
    expect(await verdict(verifier, { ...delivery, body: altered })).toMatch(/no signature matches/)
  })

  test('does not verify a signature made with another secret', async () => {
    expect(await verdict(verifier, await sign({ ...options, secret: 'another' }))).toMatch(/no signature matches/)
  })

  test('verifies the old and the new secret during a rotation', async () => {
    const rotating = hmacSignature({ ...options, secret: ['new', 'old'] })
    for (const secret of ['new', 'old']) {
      expect(await verdict(rotating, await sign({ ...options, secret }))).toBe('verified')
    }
    expect(await verdict(rotating, await sign())).toMatch(/no signature matches/)
  })
})

describe('hmacSignature', () => {
  test.each(['sha1', 'sha256', 'sha512'] as const)('agrees with createHmac on %s', async (algorithm) => {
    for (const encoding of ['hex', 'base64'] as const) {
      const signature = createHmac(algorithm, secret).update(body).digest(encoding)
      expect(await verdict(hmacSignature({ ...plain, algorithm, encoding }), signed(signature))).toBe('verified')
    }
  })

  test('verifies a signature of the timestamp, a full stop and the body', async () => {
    const now = () => 1_700_000_000_000
    const signature = createHmac('sha256', secret).update('1700000000.').update(body).digest('hex')
    const delivery = deliveryWith({ [header]: signature, 'x-timestamp': '1700000000' })
    expect(await verdict(hmacSignature({ ...plain, timestamp, now }), delivery)).toBe('verified')
    const bodyOnly = hmacSignature({ ...plain, timestamp, now, signed: '{body}' })
    expect(await verdict(bodyOnly, delivery)).toMatch(/no signature matches/)
  })

  test('does not verify a delivery whose timestamp was replaced', async () => {
    const now = () => 1_700_000_000_000
    const signature = createHmac('sha256', secret).update('1600000000.').update(body).digest('hex')
    const delivery = deliveryWith({ [header]: signature, 'x-timestamp': '1700000000' })
    expect(await verdict(hmacSignature({ ...plain, timestamp, now }), delivery)).toMatch(/no signature matches/)
  })

  test('accepts hex in either case, and base64 only with its exact case', async () => {
    expect(await verdict(hmacSignature(plain), signed(hex.toUpperCase()))).toBe('verified')
    const verifier = hmacSignature({ ...plain, encoding: 'base64' })
    expect(await verdict(verifier, signed(base64))).toBe('verified')
    expect(await verdict(verifier, signed(base64.toLowerCase()))).toMatch(/no signature matches/)
  })

  test.each(['x-signature', 'X-SIGNATURE'])('finds the header when it is written %s', async (name) => {
    expect(await verdict(hmacSignature(plain), deliveryWith({ [name]: hex }))).toBe('verified')
  })

  test.each([
    ['an empty signature', ''],
    ['text that is not hex', `${hex.slice(0, -1)}g`],
    ['a signature in base64', base64],
    ['an unexpected prefix', `sha256=${hex}`],
    ['several signatures without a separator', `${hex},${hex}`],
    ['white space around it', ` ${hex}`],
    ['a fullwidth digit', `${hex.slice(0, -1)}１`],
    ['an oversized signature', 'a'.repeat(4_097)],
  ])('reports %s as malformed', async (_, value) => {
    const delivery = { ...deliveryWith(), headers: exactHeaders({ 'x-signature': value }) }
    expect(await verdict(hmacSignature(plain), delivery)).toMatch(/malformed/)
  })

  test.each([
    ['half the signature', hex.slice(0, 32)],
    ['one digit less', hex.slice(1)],
    ['one digit more', `${hex}0`],
    ['zeros', '0'.repeat(64)],
  ])('does not verify %s', async (_, value) => {
    expect(await verdict(hmacSignature(plain), signed(value))).toMatch(/no signature matches/)
  })

  test('does not verify a delivery without its headers', async () => {
    expect(await verdict(hmacSignature(plain), deliveryWith())).toMatch(/X-Signature is missing/)
    expect(await verdict(hmacSignature({ ...plain, timestamp }), signed(hex))).toMatch(/x-timestamp is missing/)
  })

  test('does not verify a header that was sent twice', async () => {
    const field: [string, string] = [header, hex]
    for (const options of [plain, listed]) {
      expect(await verdict(hmacSignature(options), deliveryWith([field, field]))).toMatch(/malformed/)
    }
  })

  test('does not verify a signature without its prefix', async () => {
    expect(await verdict(hmacSignature({ ...plain, prefix: 'sha256=' }), signed(hex))).toMatch(/malformed/)
  })
})

describe('several signatures in one header', () => {
  const wrong = '0'.repeat(64)
  const list = (count: number) => [...Array<string>(count - 1).fill(wrong), hex].join(',')

  test('are verified when one of them matches, at any position', async () => {
    for (const value of [hex, `${hex},${wrong}`, `${wrong},${hex}`, `${wrong},${hex.toUpperCase()},${wrong}`]) {
      expect(await verdict(hmacSignature(listed), signed(value))).toBe('verified')
    }
    expect(await verdict(hmacSignature(listed), signed(`${wrong},${wrong}`))).toMatch(/no signature matches/)
  })

  test('each carry the prefix', async () => {
    const verifier = hmacSignature({ ...listed, prefix: 'v1=' })
    expect(await verdict(verifier, signed(`v1=${wrong},v1=${hex}`))).toBe('verified')
    expect(await verdict(verifier, signed(`v1=${wrong},${hex}`))).toMatch(/malformed/)
  })

  test('are at most 16', async () => {
    expect(await verdict(hmacSignature(listed), signed(list(16)))).toBe('verified')
    expect(await verdict(hmacSignature(listed), signed(list(17)))).toMatch(/malformed/)
  })

  test('are not verified when one of them is malformed', async () => {
    for (const value of [`${hex},`, `,${hex}`, `${hex},xyz`, `${hex}, ${hex}`]) {
      expect(await verdict(hmacSignature(listed), signed(value))).toMatch(/malformed/)
    }
  })
})

describe('hmacSignature cannot be built with', () => {
  test.each<[string, Partial<Record<keyof HmacSignatureOptions, unknown>>, RegExp]>([
    ['an unknown algorithm', { algorithm: 'md5' }, /algorithm must be one of sha256, sha1, sha512/],
    ['an unknown encoding', { encoding: 'base64url' }, /encoding must be one of hex, base64/],
    ...[
      'body',
      '',
      '{body}.',
      '{form}.',
      '{form}{body}',
      '{body}{body}',
      '{}{body}',
      '{header}{body}',
      '{timestamp}',
      5,
    ].map((signed): [string, object, RegExp] => [
      `${signed || 'nothing'} signed`,
      { timestamp, signed },
      /signed must be/,
    ]),
    [
      'a signed timestamp without a header for it',
      { signed: '{timestamp}.{body}' },
      /signed has \{timestamp\}, which needs the option timestamp/,
    ],
    ['an empty separator', { separator: '' }, /separator/],
    ['no header', { header: undefined }, /: header must be the name of a header/],
    ['an empty header', { header: '' }, /name of a header/],
    ['a header with a space', { header: 'x signature' }, /name of a header/],
    ['a timestamp without a header', { timestamp: {} }, /: timestamp: header must be the name of a header/],
    ...[Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY, '300'].map((toleranceSeconds): [string, object, RegExp] => [
      `a tolerance of ${toleranceSeconds}`,
      { timestamp: { header: 'x-timestamp', toleranceSeconds } },
      /toleranceSeconds must be a whole number/,
    ]),
  ])('%s', (_, options, message) => {
    const text = messageOfBuild(() => hmacSignature({ ...plain, ...options } as HmacSignatureOptions))
    expect(text).toMatch(message)
    expect(text).not.toContain(secret)
  })
})

describe('a template of what is signed', () => {
  const encode = (text: string) => new TextEncoder().encode(text)

  async function decision(verifier: Verifier, { url, headers, body }: Delivery & { readonly body: Uint8Array }) {
    const verification = await verifier.verify({ url, headers, body })
    return verification.verified ? 'verified' : verification.reason
  }

  test('verifies the published vector of Slack', async () => {
    const verifier = hmacSignature({
      secret: '8f742231b10e8888abcd99yyyzzz85a5',
      header: 'x-slack-signature',
      prefix: 'v0=',
      timestamp: { header: 'x-slack-request-timestamp' },
      signed: 'v0:{timestamp}:{body}',
      now: () => 1_531_420_618_000,
    })
    const text =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar' +
      '&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com' +
      '%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
    const headers = {
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
      'x-slack-request-timestamp': '1531420618',
    }
    expect(await decision(verifier, { ...deliveryWith(headers), body: encode(text) })).toBe('verified')
    expect(await decision(verifier, { ...deliveryWith(headers), body: encode(`${text}&`) })).toMatch(/no signature/)
  })

  test('verifies the published vector of Twilio: the URL, and the fields of the form in their order', async () => {
    const verifier = hmacSignature({
      secret: '12345',
      header: 'x-twilio-signature',
      algorithm: 'sha1',
      encoding: 'base64',
      signed: 'https://mycompany.com{url}{form}',
    })
    const fields = {
      To: '+18005551212',
      Digits: '1234',
      CallSid: 'CA1234567890ABCDE',
      From: '+14158675309',
      Caller: '+14158675309',
    }
    const form = String(new URLSearchParams(fields))
    const sent = (text: string, url = '/myapp.php?foo=1&bar=2') => ({
      ...deliveryWith({ 'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=' }),
      url,
      body: encode(text),
    })
    expect(await decision(verifier, sent(form))).toBe('verified')
    expect(await decision(verifier, sent(`${form}&Extra=1`))).toBe('no signature matches')
    expect(await decision(verifier, sent(form.replace('1234', '1235')))).toBe('no signature matches')
    expect(await decision(verifier, sent(form, '/myapp.php?foo=1&bar=3'))).toBe('no signature matches')
    expect(await decision(verifier, sent('%ff=%'))).toBe('no signature matches')
  })

  test('covers path and query of the URL, whatever host a platform puts before them', async () => {
    const verifier = hmacSignature({ ...plain, signed: 'POST https://example.com{url}\n{body}' })
    const signature = createHmac('sha256', secret)
      .update('POST https://example.com/hooks?a=1\n')
      .update(body)
      .digest('hex')
    const sent = (url: string) => ({ ...deliveryWith({ [header]: signature }), url, body })
    for (const url of ['/hooks?a=1', 'http://10.0.0.7:8080/hooks?a=1'])
      expect(await decision(verifier, sent(url))).toBe('verified')
    for (const url of ['/hooks?a=2', '/hooks', 'http://10.0.0.7:8080/other?a=1'])
      expect(await decision(verifier, sent(url))).toBe('no signature matches')
  })
})

test('hmacSignature needs the exact bytes', () => expect(hmacSignature(plain).needsBytes).toBe(true))
