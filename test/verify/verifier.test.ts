import { describe, expect, test } from 'vitest'
import {
  basicAuth,
  createReceiver,
  type DeliveryReport,
  headerToken,
  hmacSignature,
  publicKeySignature,
  snsSignature,
  standardWebhooks,
  timestampedSignature,
  unverified,
  urlToken,
  type Verifier,
  WebhookError,
} from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'
import { deliveryWith, verdict } from './verdict.ts'

const secret = 'secret-marker'

async function answerTo(verify: () => unknown) {
  const reports: DeliveryReport[] = []
  const verifier = { name: 'custom', needsBytes: false, verify } as Verifier
  const receiver = createReceiver({
    verify: verifier,
    handlers: { 'encoding.finished': () => {} },
    hooks: { delivery: (report) => void reports.push(report) },
    logger: silent,
  })
  const { status, body } = await deliver(receiver, samplePayload('encoding.finished'))
  return { status, body, report: reports[0] }
}

const throwing = (error: unknown) => () => {
  throw error
}

test.each<[string, (options: never) => unknown]>([
  ['urlToken', urlToken],
  ['headerToken', headerToken],
  ['basicAuth', basicAuth],
  ['hmacSignature', hmacSignature],
  ['publicKeySignature', publicKeySignature],
  ['snsSignature', snsSignature],
  ['standardWebhooks', standardWebhooks],
  ['timestampedSignature', timestampedSignature],
])('%s without options throws invalid_option', (_, make) => {
  expect(() => make(untyped(undefined))).toThrow(
    expect.objectContaining({ name: 'WebhookError', code: 'invalid_option' }),
  )
})

describe("a user's verifier", () => {
  test.each<[string, () => unknown]>([
    ['throws', throwing(new Error(secret))],
    ['rejects', () => Promise.reject(new Error(secret))],
    ['throws a string', throwing(secret)],
    ['throws nothing', throwing(undefined)],
    ['throws an `unauthorized` error', throwing(new WebhookError('unauthorized', secret))],
    ['rejects with an `unauthorized` error', () => Promise.reject(new WebhookError('unauthorized', secret))],
    ['throws an error of another code', throwing(new WebhookError('overloaded', secret))],
    ['returns nothing', () => undefined],
    ['resolves to nothing', async () => undefined],
    ['returns true', () => true],
    ['resolves to true', async () => true],
    ['returns a truthy word', () => ({ verified: 'yes' })],
    ['does not verify', () => ({ verified: false, reason: secret })],
    ['does not verify, asynchronously', async () => ({ verified: false, reason: secret })],
  ])('that %s leads to 401, and the answer does not say why', async (_, verify) => {
    const { status, body } = await answerTo(verify)
    expect(status).toBe(401)
    expect(JSON.parse(body)).toEqual({
      status: 'error',
      code: 'unauthorized',
      message: 'the delivery could not be verified',
    })
  })

  test('may be asynchronous', async () => {
    expect((await answerTo(async () => ({ verified: true }))).status).toBe(200)
  })

  test('has its error in the delivery report', async () => {
    const error = new Error('the key server is down')
    expect((await answerTo(throwing(error))).report).toMatchObject({ outcome: 'unauthorized', error })
    expect((await answerTo(() => Promise.reject(error))).report).toMatchObject({ outcome: 'unauthorized', error })
  })

  test.each([
    ['its error', { error: new Error('the key server is down') }],
    ['nothing else', {}],
  ])('that cannot decide now leads to 503, and says so with %s', async (_, rest) => {
    const reason = 'the key server is down'
    const { status, body, report } = await answerTo(async () => ({
      verified: false,
      unavailable: true,
      reason,
      ...rest,
    }))
    expect(status).toBe(503)
    expect(JSON.parse(body)).toMatchObject({ code: 'unavailable', message: 'the delivery cannot be accepted now' })
    expect(report).toMatchObject('error' in rest ? { error: rest.error } : { reason })
  })

  test('rejects a delivery if the principal is not a string', async () => {
    const { status, report } = await answerTo(() => ({ verified: true, principal: 7 }))
    expect(status).toBe(401)
    expect(report?.reason).toBe('the verifier returned a principal that is not a string')
  })

  test('sets the event key with its event id, unless that is empty', async () => {
    expect((await answerTo(() => ({ verified: true, eventId: 'id-1' }))).report).toMatchObject({ key: 'id-1' })
    expect((await answerTo(() => ({ verified: true, eventId: '' }))).report?.key).toContain('encoding.finished')
  })
})

describe('unverified', () => {
  test('verifies every delivery and does not need the bytes', async () => {
    expect(await verdict(unverified(), deliveryWith())).toBe('verified')
    expect(unverified()).toMatchObject({ name: 'unverified', needsBytes: false })
  })
})
