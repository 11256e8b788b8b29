import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { urlToken } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { revokedProxy } from '../support/untyped.ts'
import { answeringInbox, receiverWith } from './listening-receiver.ts'
import { scenarios, sensitive, thrown } from './scenarios.ts'

// Answered in the words of the application: see challenge.test.ts.
const { challenge: _, ...others } = scenarios
const table = Object.entries(others)
const successes = ['accepted', 'duplicate', 'ignored', 'test', 'handled']

describe.each(table)('a delivery that is %s', (outcome, { status, run }) => {
  test(`is answered ${status}, in the documented form`, async () => {
    const acknowledgement = await run({ logger: silent })
    expect(acknowledgement).toMatchObject({ outcome, status })
    const { body, headers } = acknowledgement
    expect(headers['content-type']).toBe('application/json')
    expect(headers['content-length']).toBe(String(new TextEncoder().encode(body).byteLength))
    expect(headers['allow']).toBe(status === 405 ? 'POST' : undefined)
    expect(headers['retry-after']).toBe(status === 503 ? '3' : undefined)
    expect(JSON.parse(body)).toEqual(
      successes.includes(outcome)
        ? { status: outcome }
        : { status: 'error', code: outcome, message: expect.stringMatching(/\w/) },
    )
  })

  test('is answered without its content, secrets or errors', async () => {
    const { body, headers } = await run({ logger: silent })
    const answer = JSON.stringify({ body, headers })
    for (const marker of [...Object.values(sensitive), thrown]) expect(answer).not.toContain(marker)
  })
})

test('success is exactly 200, and nothing else is', () => {
  for (const [outcome, { status }] of table) {
    if (successes.includes(outcome)) expect(status).toBe(200)
    else expect(status).toBeGreaterThanOrEqual(400)
  }
})

const throwing = (): never => {
  throw revokedProxy()
}
const rejecting = () => Promise.reject(revokedProxy())
const verifying = (verify: () => never) => ({ verify: { name: 'mine', needsBytes: true, verify } })

test.each<[string, Parameters<typeof receiverWith>[0], string]>([
  ['a verifier throws', verifying(throwing), 'unauthorized'],
  ['a verifier rejects with', verifying(rejecting as never), 'unauthorized'],
  ['a verifier returns', verifying(revokedProxy), 'internal'],
  ['eventKey throws', { eventKey: throwing }, 'internal'],
  ['eventKey returns', { eventKey: revokedProxy }, 'internal'],
  ['an inbox throws', { inbox: answeringInbox(throwing) }, 'unavailable'],
  ['an inbox rejects with', { inbox: answeringInbox(rejecting) }, 'unavailable'],
])('a delivery is answered when %s a revoked proxy, which throws on any access', async (_, options, outcome) => {
  const receiver = receiverWith({ handlers: { 'encoding.finished': () => {} }, ...options })
  expect(await deliver(receiver, samplePayload('encoding.finished'))).toMatchObject({ outcome })
})

test('a delivery is answered when its body cannot be read because of a revoked proxy', async () => {
  for (const body of [throwing, rejecting]) {
    const delivery = { method: 'POST', url: '/', headers: new Headers(), body }
    expect(await receiverWith().receive(delivery)).toMatchObject({ status: 500, outcome: 'internal' })
  }
})

test('a forged delivery is rejected, even if a tool has replaced the global Error', async () => {
  const receiver = receiverWith({ verify: urlToken({ secret: 'of another' }), logger: silent })
  vi.stubGlobal('Error', class extends Error {})
  onTestFinished(() => void vi.unstubAllGlobals())
  const url = '/webhooks/media?token=forged'
  expect(await deliver(receiver, samplePayload('encoding.finished'), { url })).toMatchObject({ status: 401 })
})
