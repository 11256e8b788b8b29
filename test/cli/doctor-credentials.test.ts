import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { nodeHandler } from '../../adapters/node.ts'
import { basicAuth, urlToken } from '../../src/index.ts'
import { watchedReceiver } from '../adapters/receivers.ts'
import { serveWebhook } from '../support/serve.ts'
import { accepted, examine, handWritten, type Request } from './examined-receiver.ts'

const query = ({ url }: Request) => new URL(url, 'http://127.0.0.1').searchParams
const handlers = { 'encoding.started': () => {} }

/** Examines a receiver that accepts the deliveries that `isAuthorized` lets through. */
const examineAt = async (target: string, isAuthorized: (request: Request) => boolean, ...flags: string[]) =>
  examine(`${await serveWebhook(handWritten(accepted, isAuthorized))}${target}`, ...flags)

describe('doctor, given credentials in the URL', () => {
  test('finds that any token is accepted', async () => {
    const { code, failed, output } = await examineAt('?token=s3cret', (request) => query(request).has('token'))
    expect({ code, failed }).toEqual({ code: 1, failed: ["rejects a delivery with a wrong 'token' in its URL"] })
    expect(output).not.toContain('s3cret')
  })

  test('finds that a token is checked only if there is one', async () => {
    const { failed } = await examineAt(
      '?token=s3cret',
      (request) => (query(request).get('token') ?? 's3cret') === 's3cret',
    )
    expect(failed).toEqual(["rejects a delivery without the 'token' in its URL"])
  })

  test('takes a 404 for a URL without its query as no proof that credentials are checked', async () => {
    const listener = handWritten(
      (request, rejection = 200) => (query(request).get('tenant') === 'acme' ? rejection : 404),
      () => true,
    )
    const { code, findings } = await examine(`${await serveWebhook(listener)}?tenant=acme`)
    expect(code).toBe(1)
    expect(findings.filter(({ verdict }) => verdict === 'failed')).toEqual([
      expect.objectContaining({
        check: "rejects a delivery with a wrong 'tenant' in its URL",
        reason: expect.stringMatching(/^404 in \d+ ms: only 401 and 403 show that credentials are checked$/),
        fix: expect.stringContaining('urlToken({ secret: process.env.'),
      }),
    ])
  })

  test('finds nothing wrong with a token beside a parameter that is not secret', async () => {
    const isAuthorized = (request: Request) => query(request).get('token') === 's3cret'
    for (const target of [
      '?tenant=acme&token=s3cret',
      '?a=longest-of-all&b=longest-of-all&c=longest-of-all&token=s3cret',
    ]) {
      const { code, failed, findings } = await examineAt(target, isAuthorized)
      expect({ code, failed }).toEqual({ code: 0, failed: [] })
      expect(findings.map(({ check }) => check).filter((check) => check.endsWith('in its URL'))).toEqual([
        "rejects a delivery with a wrong 'token' in its URL",
        "rejects a delivery without the 'token' in its URL",
      ])
    }
  })

  test('finds that none of several parameters is checked', async () => {
    const { code, failed } = await examineAt('?tenant=acme&token=s3cret', () => true)
    expect({ code, failed }).toEqual({ code: 1, failed: ['rejects a delivery with wrong credentials in its URL'] })
  })

  test('keeps the form of a token, so that a receiver that checks the form first still answers 401', async () => {
    const id = '0f8fad5b-d9cb-469f-a165-70867728950e'
    const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
    const listener = handWritten(
      (request, rejection = 200) => (form.test(query(request).get('token') ?? id) ? rejection : 400),
      (request) => query(request).get('token') === id,
    )
    expect((await examine(`${await serveWebhook(listener)}?token=${id}`)).failed).toEqual([])
  })

  test.each([
    ['0123456789abcdef', ''],
    ['c2VjcmV0IQ==', ''],
  ])('tries a query that is itself the secret, and does not print it: ?%s', async (secret) => {
    const right = ({ url }: Request) => url.endsWith(`?${secret}`)
    const good = await examineAt(`?${secret}`, right)
    expect({ code: good.code, failed: good.failed }).toEqual({ code: 0, failed: [] })
    const lax = await examineAt(`?${secret}`, ({ url }) => url.includes('?'))
    expect(lax.failed).toEqual(['rejects a delivery with a wrong query in its URL'])
    expect(good.output + lax.output).not.toContain(secret.slice(0, 8))
  })

  test('finds that any password is accepted', async () => {
    const url = await serveWebhook(
      handWritten(accepted, ({ headers }) => headers.authorization?.startsWith('Basic ') === true),
    )
    const { failed } = await examine(url.replace('//', '//media:s3cret@'))
    expect(failed).toEqual(['rejects a delivery with a wrong password in its URL'])
  })

  test('finds nothing wrong with a verified user and password', async () => {
    const { receiver } = watchedReceiver({ verify: basicAuth({ username: 'media', password: 's3 cret' }), handlers })
    const url = await serveWebhook(nodeHandler(receiver))
    const withPassword = url.replace('//', '//media:s3%20cret@')
    expect((await examine(withPassword)).failed).toEqual([])
    const flags = ['--verify', 'basic-auth', '--username', 'media', '--password', 's3 cret']
    expect((await examine(withPassword, ...flags)).failed).toEqual([])
  })

  test.each([
    ['?token=s3cret', {}, []],
    ['?tenant=acme&token=s3cret', {}, []],
    ['/s3cret', { in: 'path' }, ['--in', 'path']],
  ] as const)(
    'finds nothing wrong with --verify url-token and the token in the URL already: %s',
    async (end, options, flags) => {
      const { receiver } = watchedReceiver({ verify: urlToken({ secret: 's3cret', ...options }), handlers })
      const url = `${await serveWebhook(nodeHandler(receiver))}${end}`
      expect((await examine(url, '--verify', 'url-token', '--secret', 's3cret', ...flags)).failed).toEqual([])
    },
  )
})

describe('doctor, given signed deliveries', () => {
  const flags = ['--verify', 'hmac-signature', '--header', 'x-signature', '--secret', 's3cret']
  const hmac = (text: string) => createHmac('sha256', 's3cret').update(text).digest('hex')

  test('finds an HMAC over re-encoded JSON, which has other bytes than the sender wrote', async () => {
    const reencoded = (text: string) => {
      try {
        return JSON.stringify(JSON.parse(text))
      } catch {
        return text
      }
    }
    const isAuthorized = ({ headers, text }: Request) => headers['x-signature'] === hmac(reencoded(text))
    const { code, failed, findings } = await examineAt('', isAuthorized, ...flags)
    expect({ code, failed }).toEqual({
      code: 1,
      failed: [
        'acknowledges a title with &, < and >, which the service writes as \\u0026, \\u003c and \\u003e',
        'rejects a delivery whose body was changed after it was signed',
      ],
    })
    expect(findings.find(({ verdict }) => verdict === 'failed')?.fix).toContain('before any JSON parser')
  })

  test('warns if a status other than 401 or 403 rejects a wrong signature', async () => {
    const listener = handWritten(
      (_, rejection = 200) => (rejection === 401 ? 400 : rejection),
      ({ headers, text }) => headers['x-signature'] === hmac(text),
    )
    const { code, findings } = await examine(await serveWebhook(listener), ...flags)
    expect(code).toBe(0)
    const warned = findings.filter(({ verdict }) => verdict === 'warning')
    expect(warned.map(({ check }) => check)).toEqual([
      'handles an event once',
      'rejects a delivery without a signature',
      'rejects a delivery with a wrong secret',
      'rejects a delivery whose body was changed after it was signed',
    ])
    expect(warned.at(-1)?.reason).toMatch(/^400 in \d+ ms: only 401 and 403 show that credentials are checked$/)
  })

  test('finds nothing wrong with a secret path if every other path is 404', async () => {
    const listener = handWritten(
      (_, rejection = 200) => (rejection === 401 ? 404 : rejection),
      ({ url }) => url.endsWith('/s3cret'),
    )
    const { code, failed } = await examine(
      await serveWebhook(listener),
      '--verify',
      'url-token',
      '--in',
      'path',
      '--secret',
      's3cret',
    )
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
  })
})
