import { describe, expect, test } from 'vitest'
import { silent } from './fixture.ts'
import { scenarios, sensitive, thrown } from './scenarios.ts'

const table = Object.entries(scenarios)
const successes = ['accepted', 'duplicate', 'ignored', 'handled']

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
