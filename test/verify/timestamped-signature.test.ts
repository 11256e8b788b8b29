import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { timestampedSignature } from '../../src/index.ts'
import { makeDelivery, samplePayload, signWithTimestampedSignature } from '../../src/testing/index.ts'
import { body, deliveryWith, messageOfBuild, verdict } from './verdict.ts'

const secret = 'a signing secret'
const header = 'mux-signature'
const signedAt = 1_700_000_000
const now = () => signedAt * 1_000
const hmacOf = (signed: string, key = secret, content: Uint8Array = body) =>
  createHmac('sha256', key).update(`${signed}.`).update(content).digest('hex')

const right = hmacOf(`${signedAt}`)
const wrong = '0'.repeat(64)
const valid = `t=${signedAt},v1=${right}`
const verifier = timestampedSignature({ secret, header, now })
const check = (value: string) => verdict(verifier, deliveryWith({ [header]: value }))

describe('timestampedSignature', () => {
  // The secret, body and signature of the tests of Mux's own library.
  const published = {
    secret: 'SuperSecret123',
    body: new TextEncoder().encode('{"test":"body"}'),
    value: 't=1565125718,v1=854ece4c22acef7c66b57d4e504153bc512595e8e9c772ece2a68150548c19a7',
  }
  const judgePublished = (value: string) => {
    const verifier = timestampedSignature({ secret: published.secret, header, now: () => 1_565_125_718_000 })
    return verifier.verify({ url: '/', headers: new Headers({ 'Mux-Signature': value }), body: published.body })
  }

  test('verifies the published vector', async () => {
    expect(await judgePublished(published.value)).toEqual({ verified: true })
  })

  test.each([
    ['another time', published.value.replace('718', '719')],
    ['the same time in other characters', published.value.replace('t=', 't=0')],
    ['another signature', published.value.replace('v1=8', 'v1=9')],
  ])('does not verify the published vector with %s', async (_, value) => {
    expect(await judgePublished(value)).toEqual({ verified: false, reason: 'no signature matches' })
  })

  test.each<[sender: string, header: string, names: { time?: string; signature?: string }, value: string]>([
    ['Stripe', 'Stripe-Signature', {}, `t=${signedAt},v1=${right},v0=${wrong}`],
    ['Cloudflare Stream', 'Webhook-Signature', { time: 'time', signature: 'sig1' }, `time=${signedAt},sig1=${right}`],
  ])('verifies what %s sends', async (_, header, names, value) => {
    const verifier = timestampedSignature({ secret, header, ...names, now })
    expect(await verdict(verifier, deliveryWith({ [header]: value }))).toBe('verified')
    expect(await verdict(verifier, deliveryWith({ [header]: value.replace(right, wrong) }))).toBe(
      'no signature matches',
    )
  })

  test('verifies what its signer makes, and nothing else', async () => {
    const name = fc.constantFrom('t', 'v1', 'v', 'time', 'sig1', 's-1', '*')
    const key = fc.stringMatching(/^[!-~]{1,40}$/)
    await fc.assert(
      fc.asyncProperty(key, key, name, name, fc.json(), async (secret, other, time, signature, content) => {
        fc.pre(time !== signature && secret !== other)
        const options = { header, time, signature }
        const body = new TextEncoder().encode(content)
        const signed = await signWithTimestampedSignature({ ...options, secret })({ url: '/', headers: {}, body })
        const verify = async (secret: string, body: Uint8Array) => {
          const headers = new Headers(signed.headers)
          return (await timestampedSignature({ ...options, secret }).verify({ url: '/', headers, body })).verified
        }
        expect(await verify(secret, body)).toBe(true)
        expect(await verify(other, body)).toBe(false)
        expect(await verify(secret, new TextEncoder().encode(`${content} `))).toBe(false)
      }),
    )
  })

  test('signs the time and the body, under the names of the options', async () => {
    const sign = signWithTimestampedSignature({ secret, header, time: 'time', signature: 'sig1', now })
    const { headers } = await makeDelivery(samplePayload('encoding.finished'), { sign })
    expect(headers.get(header)).toBe(`time=${signedAt},sig1=${right}`)
  })

  test('does not verify a body that changed', async () => {
    const altered = new TextEncoder().encode(new TextDecoder().decode(body).replace('holiday', 'Holiday'))
    const delivery = { ...deliveryWith({ [header]: valid }), body: altered }
    expect(await verdict(verifier, delivery)).toBe('no signature matches')
  })

  test('verifies the old and the new secret during a rotation', async () => {
    const checkWith = (...secret: string[]) =>
      verdict(timestampedSignature({ secret, header, now }), deliveryWith({ [header]: valid }))
    expect(await checkWith('another', secret)).toBe('verified')
    expect(await checkWith(secret, 'another')).toBe('verified')
    expect(await checkWith('another')).toBe('no signature matches')
  })

  const entries = (count: number, entry: string) => Array(count).fill(entry).join(',')

  test.each([
    ['in upper case', `t=${signedAt},v1=${right.toUpperCase()}`],
    ['after a wrong one', `t=${signedAt},v1=${wrong},v1=${right}`],
    ['before a wrong one', `t=${signedAt},v1=${right},v1=${wrong}`],
    ['before the time', `v1=${right},t=${signedAt}`],
    ['beside entries of other names', `v0=!,t0=1,V1=b,v2=a=b==,${valid},v11=x,T=2`],
    ['as the last of 16', `t=${signedAt},${entries(15, `v1=${wrong}`)},v1=${right}`],
    ['in a header of 4,096 characters', `${valid},x=`.padEnd(4_096, 'x')],
  ])('finds the signature %s', async (_, value) => {
    expect(await check(value)).toBe('verified')
  })

  test.each([
    ['a header without a time', `v1=${right}`],
    ['a header without a signature', `t=${signedAt}`],
    ['signatures of other names only', `t=${signedAt},v0=${right}`],
    ['an empty time', `t=,v1=${right}`],
    ['an empty signature', `t=${signedAt},v1=`],
    ['a signature without a name', `t=${signedAt},${right}`],
    ['a signature in base64', `t=${signedAt},v1=${Buffer.from(right, 'hex').toString('base64')}`],
    ['a malformed signature beside the right one', `${valid},v1=xyz`],
    ['an entry that is no pair', `${valid},junk`],
    ['an entry without a name', `${valid},=junk`],
    ['an empty entry', `${valid},`],
    ['white space between entries', `t=${signedAt}, v1=${right}`],
    ['white space inside an entry', `${valid},v2=a b`],
    ['another separator', `t=${signedAt};v1=${right}`],
    ['two times', `t=${signedAt},${valid}`],
    ['two times that differ', `t=${signedAt - 1},${valid}`],
    ['17 signatures', `t=${signedAt},${entries(16, `v1=${wrong}`)},v1=${right}`],
    ['a header of 4,097 characters', `${valid},x=`.padEnd(4_097, 'x')],
    ['an empty header', ''],
  ])('does not verify %s', async (_, value) => {
    expect(await check(value)).toBe('header mux-signature is malformed: it needs one t=… and 1 to 16 v1=… in hex')
  })

  test.each([
    ['the same value', valid],
    ['a value without a time', `v1=${right}`],
    ['a value of other names', 'v0=a'],
  ])('does not verify a header that was sent twice, the second time with %s', async (_, second) => {
    for (const values of [
      [valid, second],
      [second, valid],
    ]) {
      const fields = values.map((value): [string, string] => [header, value])
      expect(await verdict(verifier, deliveryWith(fields))).toMatch(/malformed/)
    }
  })

  test('does not verify a delivery without the header', async () => {
    expect(await verdict(verifier, deliveryWith({ 'stripe-signature': valid }))).toBe('header mux-signature is missing')
  })

  test.each([
    ['too old', signedAt - 301],
    ['in the future', signedAt + 301],
  ])('does not verify a genuine signature whose time is %s', async (fault, time) => {
    expect(await check(`t=${time},v1=${hmacOf(`${time}`)}`)).toBe(`the timestamp is ${fault}`)
  })

  test.each(['1e9', '1700000000.0', '0x65', '-1', '2023-11-14T22:13:20Z'])(
    'does not verify the time %s, which its signature covers',
    async (time) => {
      expect(await check(`t=${time},v1=${hmacOf(time)}`)).toBe('the timestamp is malformed')
    },
  )

  test.each([
    [{ time: '' }, /^timestampedSignature: time must be a name such as 't'/],
    [{ time: 't=' }, /time must be a name/],
    [{ time: 't,' }, /time must be a name/],
    [{ time: ' t' }, /time must be a name/],
    [{ signature: 'v 1' }, /^timestampedSignature: signature must be a name/],
    [{ signature: 1 }, /signature must be a name/],
    [{ time: 'v1' }, /^timestampedSignature: time must differ from signature$/],
    [{ signature: 't' }, /time must differ from signature/],
    [{ time: 'x', signature: 'x' }, /time must differ from signature/],
    [{ header: '' }, /^timestampedSignature: header must be the name of a header/],
    [{ header: undefined }, /header must be the name of a header/],
    [{ toleranceSeconds: 0 }, /^timestampedSignature: toleranceSeconds must be/],
    [{ toleranceSeconds: Number.POSITIVE_INFINITY }, /toleranceSeconds must be/],
    [{ now: 1 }, /now must be a function/],
    [{ tolerance: 60 }, /there is no option tolerance/],
  ])('cannot be built with %o', (wrongOptions, message) => {
    const options = { secret, header, ...wrongOptions }
    expect(messageOfBuild(() => timestampedSignature(options as never))).toMatch(message)
    expect(messageOfBuild(() => signWithTimestampedSignature(options as never))).toMatch(message)
  })

  test('needs the exact bytes', () => expect(verifier.needsBytes).toBe(true))
})
