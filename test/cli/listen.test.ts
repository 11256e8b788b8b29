import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import * as verifiers from '../../src/index.ts'
import { type SigningOptions, signerFor } from '../../src/service/emulator/sending/signing.ts'
import { encodePayload, makeDelivery, samplePayload } from '../../src/testing/index.ts'
import { postJson } from '../support/post-json.ts'
import { faultsIn } from './compiled.ts'
import { finish, start } from './program.ts'
import { named, secret, secretOf } from './schemes.ts'

const body = encodePayload(samplePayload('encoding.finished'))

/** Starts `listen --json`. */
async function listen(args: readonly string[] = [], env: Record<string, string> = {}) {
  const program = start(['listen', '--port', '0', '--json', ...args], env)
  const { url } = JSON.parse(await program.line(/"url"/))
  return {
    program,
    url: `${url}/hook`,
    /** Waits for a number of deliveries, and returns what was printed about them. */
    deliveries: async (count: number) => (await program.lines(/^{"at"/, count)).map((line) => JSON.parse(line)),
  }
}

const post = async (url: string, headers: Record<string, string> = {}, content: Uint8Array = body) =>
  (await postJson(url, content, headers)).status

/** Runs a pasted line of code with the secret in the environment, and returns the verifier. */
function paste(line: string, env: Record<string, string>): verifiers.Verifier {
  const javascript = line.replace('MEDIA_WEBHOOKS_SECRET!', 'MEDIA_WEBHOOKS_SECRET')
  const names = Object.keys(verifiers)
  return new Function('process', ...names, `return ${javascript}`)({ env }, ...Object.values(verifiers))
}

/** Code that was printed to paste. */
const printed: string[] = []

/** Runs pasted code with the secret in the environment, and returns its verifier. */
function pasteCode(code: string, env: Record<string, string>): verifiers.Verifier {
  const javascript = code.replace('MEDIA_WEBHOOKS_SECRET!', 'MEDIA_WEBHOOKS_SECRET').replace(': Verifier', '')
  const names = Object.keys(verifiers)
  return new Function('process', ...names, `${javascript}\nreturn verify`)({ env }, ...Object.values(verifiers))
}

async function isVerified(verifier: verifiers.Verifier, options: SigningOptions) {
  const { url, headers } = await makeDelivery(body, { sign: signerFor(options, 'msg_1') })
  return (await verifier.verify({ url, headers, body })).verified
}

const withWrongSecret = (options: SigningOptions): SigningOptions => {
  const wrong = 'bm90IHRoZSBzZWNyZXQ='
  return options.scheme === 'basic-auth' ? { ...options, password: wrong } : { ...options, secret: wrong }
}

describe('listen with a secret', () => {
  test.each(named)('finds the verifier for %s, and prints the line to paste', async (_, options, flags) => {
    const env = secretOf(options)
    const { program, url, deliveries } = await listen([], env)
    const sent = await finish(['trigger', 'file.received', '--to', url, '--sign', options.scheme, ...flags], env)
    expect(sent.code).toBe(0)
    const [{ lines, advice }] = await deliveries(1)
    expect(advice).toContain('The delivery proves its sender')

    printed.push(`export const verify = ${lines[0]}`)
    const verifier = paste(lines[0], env)
    expect(await isVerified(verifier, options)).toBe(true)
    expect(await isVerified(verifier, withWrongSecret(options))).toBe(false)
    expect(program.output()).not.toContain(env.MEDIA_WEBHOOKS_SECRET)
    expect(program.output()).not.toContain(encodeURIComponent(env.MEDIA_WEBHOOKS_SECRET))
  })

  test('says that a signature was made with another secret', async () => {
    const { url, deliveries } = await listen(['--secret', secret])
    await post(url, { 'x-signature': 'a'.repeat(64) })
    const [{ lines, advice }] = await deliveries(1)
    expect(lines).toEqual([])
    expect(advice).toContain('by the header x-signature, but no verifier accepts it with this secret')
  })

  test.each(named.filter(([name]) => /time|standard/.test(name)))(
    'says for %s that only the time is wrong',
    async (_, options, flags) => {
      const env = secretOf(options)
      const signer = signerFor(options, 'msg_1', () => Date.now() - 3_600_000)
      const { headers } = await makeDelivery(body, { sign: signer })
      for (const verify of [[], ['--verify', options.scheme, ...flags]]) {
        const { url, deliveries } = await listen(verify, env)
        await post(url, Object.fromEntries(headers as Headers))
        const [{ advice, lines }] = await deliveries(1)
        expect(advice).toMatch(/^It is signed with this secret, but its time is 36\d\d s off this machine's clock\. /)
        expect(await isVerified(paste(lines[0], env), options)).toBe(true)
      }
    },
  )

  const seconds = () => String(Math.floor(Date.now() / 1_000))
  const hmacOf = (signed: string, algorithm = 'sha256', encoding: 'hex' | 'base64' = 'hex') =>
    createHmac(algorithm, secret).update(signed).update(body).digest(encoding)

  /** Headers with a signature inside, each made for a time. */
  const inside: [string, (time: string) => Record<string, string>][] = [
    ['t=…;v1=…', (time) => ({ 'x-sig': `t=${time};v1=${hmacOf(`${time}.`)}` })],
    [
      'spaces, and two signatures, the second with this secret',
      (time) => ({ 'x-sig': `t=${time}, v1=${'0'.repeat(64)}, v1=${hmacOf(`${time}.`).toUpperCase()}` }),
    ],
    ['another hash', (time) => ({ 'x-sig': `t=${time},v1=${hmacOf(`${time}.`, 'sha512')}` })],
    ['a colon after the time', (time) => ({ 'x-sig': `t=${time},v1=${hmacOf(`${time}:`)}` })],
    ['two algorithms', () => ({ 'x-sig': `md5=${'0'.repeat(32)}; sha512=${hmacOf('', 'sha512')}` })],
    ['quotes', () => ({ authorization: `Signature keyId="media",signature="${hmacOf('', 'sha1', 'base64')}"` })],
    ['the time in another header', (time) => ({ 'x-sig': `a=b,v1=${hmacOf(`${time}.`)}`, 'x-time': time })],
  ]

  test.each(inside)('finds a signature inside a header with %s, and prints the code to paste', async (_, headersAt) => {
    const { program, url, deliveries } = await listen(['--secret', secret])
    const time = seconds()
    const headers = headersAt(time)
    await post(url, headers)
    const [{ lines, advice }] = await deliveries(1)
    expect(advice).toMatch(/^The delivery proves its sender\. .* is the HMAC-SHA\d+ of .* Verify it with:$/)
    expect(lines).toHaveLength(1)

    printed.push(`${lines[0]}\nexport { verify }`)
    const verifier = pasteCode(lines[0], { MEDIA_WEBHOOKS_SECRET: secret })
    const delivery = { url: '/hook', headers: new Headers(headers), body }
    expect(await verifier.verify(delivery)).toEqual({ verified: true })
    expect(await verifier.verify({ ...delivery, body: Buffer.from('{}') })).toMatchObject({ verified: false })
    expect(await verifier.verify({ ...delivery, headers: new Headers() })).toMatchObject({ verified: false })
    const wrong = pasteCode(lines[0], { MEDIA_WEBHOOKS_SECRET: 'another' })
    expect(await wrong.verify(delivery)).toMatchObject({ verified: false })
    for (const signature of [hmacOf(''), hmacOf(`${time}.`)]) expect(program.output()).not.toContain(signature)
  })

  test.each<[header: string, value: (time: string) => string, options: string]>([
    ['mux-signature', (time) => `t=${time},v1=${hmacOf(`${time}.`)}`, ''],
    ['stripe-signature', (time) => `t=${time},v1=${'0'.repeat(64)},v1=${hmacOf(`${time}.`)},v0=${'1'.repeat(64)}`, ''],
    ['webhook-signature', (time) => `time=${time},sig1=${hmacOf(`${time}.`)}`, ", time: 'time', signature: 'sig1'"],
    ['x-sig', (time) => `s=${hmacOf(`${time}.`).toUpperCase()},id=7,at=${time}`, ", time: 'at', signature: 's'"],
  ])('finds timestampedSignature for the header %s', async (header, value, options) => {
    const { url, deliveries } = await listen(['--secret', secret])
    await post(url, { [header]: value(seconds()) })
    const [{ lines, headers }] = await deliveries(1)
    expect(lines).toEqual([
      `timestampedSignature({ secret: process.env.MEDIA_WEBHOOKS_SECRET!, header: '${header}'${options} })`,
    ])
    expect(headers).toContainEqual([header, expect.stringContaining('masked')])
  })

  test('prints code that compiles', () => {
    expect(printed).toHaveLength(named.length + inside.length)
    const names = Object.keys(verifiers)
    const codes = printed.map((code) => {
      const used = [
        ...names.filter((name) => code.includes(`${name}(`)),
        ...(/: Verifier/.test(code) ? ['type Verifier'] : []),
      ]
      return `import { ${used.join(', ')} } from 'media-webhooks'\n${code}`
    })
    expect(faultsIn(codes)).toEqual([])
  })

  test('describes a signature that no verifier of the package computes', async () => {
    const { url, deliveries } = await listen(['--secret', secret])
    const signatureAt = (time: number) => Buffer.from(hmacOf(`${time}:`), 'hex').toString('base64url')
    // One in four has no character that base64 lacks.
    let time = Number(seconds())
    while (!/[-_]/.test(signatureAt(time))) time--
    await post(url, { 'x-sig': `t=${time},v1=${signatureAt(time)}` })
    const [{ lines, advice }] = await deliveries(1)
    expect(lines).toEqual([])
    expect(advice).toBe(
      'The delivery proves its sender. The base64url text (after v1= in the header x-sig) is the HMAC-SHA256 of the time ' +
        "(after t= in the header x-sig), ':' and the body. No verifier of this package does that: write your own.",
    )
  })

  test('proposes no verifier that covers less than what was signed', async () => {
    const { url, deliveries } = await listen(['--secret', secret])
    const { headers } = await makeDelivery(body, {
      sign: signerFor({ scheme: 'hmac-signature', secret, header: 'x-signature', timestampHeader: 'x-time' }, 'msg_1'),
    })
    const get = (name: string) => headers.get(name) ?? ''
    await post(url, { 'x-signature': get('x-signature'), 'x-time': get('x-time'), 'x-nonce': get('x-time') })
    const [{ lines }] = await deliveries(1)
    expect(lines.every((line: string) => line.includes('timestamp: {'))).toBe(true)
  })
})

describe('listen without a secret', () => {
  test('says that nothing is signed, and proposes urlToken', async () => {
    const { url, deliveries } = await listen()
    expect(await post(url)).toBe(200)
    const [{ advice, lines, headers, event, outcome }] = await deliveries(1)
    expect(advice).toContain('Nothing is signed')
    expect(lines).toEqual(['urlToken({ secret: process.env.MEDIA_WEBHOOKS_SECRET! })'])
    expect(headers).toContainEqual(['content-type', 'application/json'])
    expect({ outcome, type: event.type, qualities: event.qualities }).toEqual({
      outcome: 'accepted',
      type: 'encoding.finished',
      qualities: ['360p', '720p'],
    })
  })

  test.each([
    ['/0f8fad5b-d9cb-469f-a165-70867728950e', '/hook/…', 'the end of the path', "in: 'path' })"],
    ['?token=abc', '/hook?token=…', 'the query parameter token', 'process.env.MEDIA_WEBHOOKS_SECRET! })'],
    ['?t=0123456789abcdef', '/hook?t=…', 'the query parameter t', "parameter: 't' })"],
    [
      '?0123456789abcdef',
      '/hook?…',
      'the query, which lacks the name of a parameter (write it as ?token=…)',
      'process.env.MEDIA_WEBHOOKS_SECRET! })',
    ],
  ])('says that the end of %s may be a token', async (end, shown, where, line) => {
    const { url, deliveries } = await listen()
    await post(`${url}${end}`)
    const [delivery] = await deliveries(1)
    expect(delivery).toMatchObject({
      url: shown,
      advice: `The URL may contain a token: ${where}. If it does, verify it with:`,
      lines: [expect.stringContaining(line)],
    })
  })

  test('does not take a parameter for a token if it does not look like one', async () => {
    const { url, deliveries } = await listen()
    await post(`${url}/media-webhooks?tenant=5`)
    expect((await deliveries(1))[0].advice).toContain('Nothing is signed')
  })

  test('masks a secret in the URL that a proxy repeats in a header', async () => {
    const { program, url, deliveries } = await listen()
    const uri = '/hook?9f86d081884c7d659a2feaa0c55ad015'
    await post(url, { 'x-forwarded-uri': uri, referer: `https://example.com${uri}` })
    expect((await deliveries(1))[0].headers).toContainEqual(['x-forwarded-uri', '/hook?…'])
    expect(program.output()).not.toContain('9f86d081884c7d659a2feaa0c55ad015')
  })

  test('says that a header with a signature inside may be signed, and masks it', async () => {
    const { program, url, deliveries } = await listen()
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    await post(url, { 'x-sig': `t=1700000000,v1=${signature}`, 'x-thing': `a=b; v1=${signature}` })
    const [{ advice, headers }] = await deliveries(1)
    expect(advice).toContain('may be signed, by the header x-sig, the header x-thing. Give the secret')
    expect(headers).toContainEqual(['x-sig', 't=… (10 hex digits, masked),v1=… (64 hex digits, masked)'])
    expect(program.output()).not.toContain(signature)
  })

  test('asks for the secret of a delivery that may be signed, and masks its credentials', async () => {
    const { program, url, deliveries } = await listen()
    const credential = '9f86d081884c7d659a2feaa0c55ad015'
    await post(`${url}?token=${credential}`, { 'x-signature': `sha256=${credential}`, 'x-thing': credential })
    const [{ advice, url: shown }] = await deliveries(1)
    expect(advice).toContain('the header x-signature, the header x-thing, the query parameter token')
    expect(shown).toBe('/hook?token=…')
    expect(program.output()).not.toContain(credential)
  })
})

describe('listen', () => {
  test('accepts the deliveries of any other sender, and finds their verifier', async () => {
    const { url, deliveries } = await listen(['--secret', secret])
    const time = String(Math.floor(Date.now() / 1_000))
    const other = Buffer.from('{"uid":"6b9e68b0","readyToStream":true}')
    const signature = createHmac('sha256', secret).update(`${time}.`).update(other).digest('hex')
    expect(await post(url, { 'webhook-signature': `time=${time},sig1=${signature}` }, other)).toBe(200)
    expect(await post(url, {}, Buffer.from('{"type":"video.asset.ready","data":{}}'))).toBe(200)
    const [first, second] = await deliveries(2)
    expect(first.lines[0]).toContain(
      "timestampedSignature({ secret: process.env.MEDIA_WEBHOOKS_SECRET!, header: 'webhook-signature', time: 'time', signature: 'sig1' })",
    )
    expect([first.event.type, second.event.type]).toEqual(['unknown', 'video.asset.ready'])
  })

  test('distinguishes duplicate, malformed and wrong deliveries', async () => {
    const { url, deliveries } = await listen()
    await post(url)
    await post(url)
    await post(url, {}, Buffer.from('{'))
    await post(url, {}, Buffer.from('{"type":"encoding.finished"}'))
    await post(url, { 'content-type': 'text/plain' })
    const outcomes = (await deliveries(5)).map(({ outcome, status }) => [outcome, status])
    expect(outcomes).toEqual([
      ['accepted', 200],
      ['duplicate', 200],
      ['malformed', 400],
      ['malformed', 400],
      ['unsupported_media_type', 415],
    ])
  })

  test('masks the end of the path if --in path says that it is the token', async () => {
    const { program, url, deliveries } = await listen(['--verify', 'url-token', '--in', 'path', '--secret', secret])
    expect(await post(`${url}/other`)).toBe(401)
    expect((await deliveries(1))[0].url).toBe('/hook/…')
    expect(program.output()).not.toContain('other')
  })

  test('with --verify rejects deliveries that are not verified, and says which verifier would accept them', async () => {
    const { url, deliveries } = await listen(['--verify', 'header-token', '--header', 'x-token', '--secret', secret])
    expect(await post(url, { 'x-token': secret })).toBe(200)
    expect(await post(url, { 'x-other': secret })).toBe(401)
    const [right, wrong] = await deliveries(2)
    expect(right.advice).toBeUndefined()
    expect(wrong.reason).toBe('header x-token is missing')
    expect(wrong.lines).toEqual(["headerToken({ secret: process.env.MEDIA_WEBHOOKS_SECRET!, header: 'x-other' })"])
  })

  test('prints each advice once for people, and nothing that could control a terminal', async () => {
    const program = start(['listen', '--port', '0'])
    const url = /http\S+\d/.exec(await program.line(/^Listening on http/))?.[0] ?? ''
    for (const media_id of ['1', '2']) {
      await post(url, {}, encodePayload(samplePayload('file.received', { media_id, title: '\u001b[31mred\u009b' })))
    }
    await program.line(/ file\.received {2}2 /)
    program.interrupt()
    expect(await program.code).toBe(0)
    expect(program.output().split('Nothing is signed')).toHaveLength(2)
    expect(program.output()).toContain("'\\u{1b}[31mred\\u{9b}'")
    expect(program.output()).not.toContain('\u001b')
  })

  test('prints nothing for machines that could control a terminal', async () => {
    const title = '\u001b[31m\u009b\u202e\u{e0001}'
    const { program, url, deliveries } = await listen()
    await post(url, {}, encodePayload(samplePayload('file.received', { title })))
    const [{ event }] = await deliveries(1)
    expect(event.title).toBe(title)
    expect(program.output()).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
  })

  test('says that a port is taken, and how to get another', async () => {
    const { url } = await listen()
    const { port } = new URL(url)
    const second = await finish(['listen', '--port', port])
    expect(second.code).toBe(1)
    expect(second.errors).toBe(
      `media-webhooks: port ${port} is taken: pass another --port, or --port 0 for a free one\n`,
    )
  })
})
