import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hmacSignature, standardWebhooks, timestampedSignature, type Verifier } from '../../src/index.ts'
import { body, deliveryWith, exactHeaders, verdict } from './verdict.ts'

interface Scheme {
  build(now: () => number, toleranceSeconds?: number): Verifier
  /** Header fields with a valid signature for any timestamp. */
  sign(timestamp: string): Record<string, string>
}

const key = Buffer.from('a key of the right length')

const schemes: Record<string, Scheme> = {
  hmacSignature: {
    build: (now, toleranceSeconds) =>
      hmacSignature({
        secret: key.toString(),
        header: 'x-signature',
        timestamp: { header: 'x-timestamp', ...(toleranceSeconds && { toleranceSeconds }) },
        now,
      }),
    sign: (timestamp) => ({
      'x-timestamp': timestamp,
      'x-signature': createHmac('sha256', key).update(`${timestamp}.`).update(body).digest('hex'),
    }),
  },
  standardWebhooks: {
    build: (now, toleranceSeconds) =>
      standardWebhooks({ secret: key.toString('base64'), now, ...(toleranceSeconds && { toleranceSeconds }) }),
    sign: (timestamp) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(body).digest('base64')}`,
    }),
  },
  timestampedSignature: {
    build: (now, toleranceSeconds) =>
      timestampedSignature({
        secret: key.toString(),
        header: 'x-signature',
        now,
        ...(toleranceSeconds && { toleranceSeconds }),
      }),
    sign: (timestamp) => ({
      'x-signature': `t=${timestamp},v1=${createHmac('sha256', key).update(`${timestamp}.`).update(body).digest('hex')}`,
    }),
  },
}

const signedAt = 1_700_000_000

describe.each(Object.entries(schemes))('the timestamp of %s', (_, { build, sign }) => {
  const at = (now: number, timestamp = String(signedAt), tolerance?: number) =>
    verdict(
      build(() => now, tolerance),
      { ...deliveryWith(), headers: exactHeaders(sign(timestamp)) },
    )

  test.each([0, 299.999, 300, -300, -299.999])('may be %d s old', async (age) => {
    expect(await at((signedAt + age) * 1_000)).toBe('verified')
  })

  test.each([300.001, 301, 86_400])('may not be %d s old', async (age) => {
    expect(await at((signedAt + age) * 1_000)).toMatch(/too old/)
  })

  test.each([300.001, 301, 86_400])('may not be %d s in the future', async (lead) => {
    expect(await at((signedAt - lead) * 1_000)).toMatch(/in the future/)
  })

  test('is checked against the tolerance that the user gives', async () => {
    expect(await at((signedAt + 10) * 1_000, undefined, 10)).toBe('verified')
    expect(await at((signedAt + 10.001) * 1_000, undefined, 10)).toMatch(/too old/)
    expect(await at((signedAt - 10.001) * 1_000, undefined, 10)).toMatch(/in the future/)
    expect(await at((signedAt + 3_600) * 1_000, undefined, 3_600)).toBe('verified')
  })

  test('is not verified while the clock returns NaN', async () => {
    expect(await at(Number.NaN)).not.toBe('verified')
  })

  // Each has a valid signature. If it reads as a number, the clock shows that time, so that only its form is wrong.
  test.each([
    '1e9',
    '-1',
    '+1',
    ' 123',
    '123 ',
    '1.5',
    '0x10',
    '1_000',
    '١٢٣',
    'NaN',
    'Infinity',
    '2026-03-01T12:00:00Z',
    '123, 123',
    '123\n',
    '9'.repeat(13),
    '9'.repeat(5_000),
  ])('is malformed as %o', async (timestamp) => {
    expect(await at(Number(timestamp) * 1_000, timestamp)).toMatch(/malformed/)
  })

  test('is required', async () => {
    expect(await at(0, '')).not.toBe('verified')
    const { 'x-timestamp': _, 'webhook-timestamp': __, ...rest } = sign(String(signedAt))
    expect(
      await verdict(
        build(() => signedAt * 1_000),
        deliveryWith(
          Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, value.replace(/^t=\d+,/, '')])),
        ),
      ),
    ).toMatch(/missing|malformed/)
  })
})
