import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Acknowledgement, createReceiver, eventTypes, unverified } from '../../src/index.ts'
import { deliver, encodePayload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'

const receiver = createReceiver({
  verify: unverified(),
  logger: silent,
}).onAny(() => {})

/** The status of each outcome that a POST of JSON can have. */
const table: Record<string, number> = { accepted: 200, duplicate: 200, malformed: 400, too_large: 413 }

/** Checks that an acknowledgement is in the table of outcomes and has the documented form. */
function expectDocumented({ outcome, status, headers, body }: Acknowledgement): void {
  expect(table[outcome]).toBe(status)
  expect(headers['content-type']).toBe('application/json')
  expect(headers['content-length']).toBe(String(new TextEncoder().encode(body).byteLength))
  const answer = JSON.parse(body)
  if (status === 200) expect(answer).toEqual({ status: outcome })
  else expect(answer).toEqual({ status: 'error', code: outcome, message: expect.any(String) })
}

async function statusOf(body: Uint8Array | string): Promise<number> {
  const { handled: _, ...acknowledgement } = await deliver(receiver, body)
  expectDocumented(acknowledgement)
  return acknowledgement.status
}

const isText = (value: unknown) => typeof value === 'string' && value !== ''
const isId = (value: unknown) => isText(value) || Number.isSafeInteger(value)
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const optional = ['emitted_at', 'media_type', 'qualities', 'title', 'status', 'user_id']
const mediaIds = ['videoId', 'video_id', 'mediaId', 'media_id']
const enveloped = [...mediaIds, ...optional, 'emittedAt', 'mediaType', 'userId']

/** Decides whether a value is a payload. The receiver is compared with this second implementation. */
function isPayload(value: unknown): boolean {
  if (!isObject(value)) return false
  const { type, event, data } = value
  if (isText(type) || !isText(event)) {
    return isText(type) && isId(value['media_id'])
  }
  return isObject(data) && mediaIds.some((field) => isId(data[field]))
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

const expected = (value: unknown) => (isPayload(value) ? 200 : 400)

// Each test makes hundreds of deliveries, which a busy machine does not finish in the default 5 s.
describe('for every input', () => {
  test('any bytes are acknowledged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
        expect(await statusOf(bytes)).toBe(expected(parsed(bytes)))
      }),
      { numRuns: 500 },
    )
  })

  test('any JSON is acknowledged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ maxDepth: 6, stringUnit: 'binary' }), async (text) => {
        expect(await statusOf(text)).toBe(expected(JSON.parse(text)))
      }),
      { numRuns: 500 },
    )
  })

  test('only payloads are answered with 200', async () => {
    const value = fc.oneof(
      { weight: 6, arbitrary: fc.string({ unit: 'binary' }) },
      { weight: 2, arbitrary: fc.constantFrom(null, '') },
      { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
    )
    const name = fc.oneof(fc.constantFrom<string>(...eventTypes, 'encoding_failed', 'video.deleted'), value)
    const fields = (names: string[]) => Object.fromEntries(names.map((name) => [name, value]))
    const data = fc.oneof(fc.record(fields(enveloped), { requiredKeys: [] }), value)
    const flat = fc.record({ type: name, media_id: value, ...fields(optional) }, { requiredKeys: [] })
    const envelope = fc.record({ type: name, event: name, data }, { requiredKeys: ['event', 'data'] })
    const seen = new Set<number>()
    await fc.assert(
      fc.asyncProperty(fc.oneof(flat, envelope), async (payload) => {
        const text = JSON.stringify(payload)
        const status = await statusOf(text)
        seen.add(status)
        expect(status).toBe(expected(JSON.parse(text)))
      }),
      { numRuns: 1_000 },
    )
    expect([...seen].sort()).toEqual([200, 400])
  })

  test('payloads with bytes changed, removed and inserted are acknowledged', async () => {
    const mutation = fc.record({ at: fc.nat(), cut: fc.nat({ max: 4 }), put: fc.uint8Array({ maxLength: 4 }) })
    const sent = fc.tuple(fc.constantFrom(...eventTypes), fc.constantFrom('flat' as const, 'envelope' as const))
    await fc.assert(
      fc.asyncProperty(sent, fc.array(mutation, { minLength: 1, maxLength: 3 }), async ([type, format], mutations) => {
        let bytes: Uint8Array = encodePayload(samplePayload(type), format)
        for (const { at, cut, put } of mutations) {
          const index = at % (bytes.length + 1)
          bytes = Uint8Array.from([...bytes.subarray(0, index), ...put, ...bytes.subarray(index + cut)])
        }
        expect(await statusOf(bytes)).toBe(expected(parsed(bytes)))
      }),
      { numRuns: 1_000 },
    )
  })

  test('any body beyond the limit is too large', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 65_537, max: 80_000 }), fc.nat({ max: 255 }), async (length, byte) => {
        expect(await statusOf(new Uint8Array(length).fill(byte))).toBe(413)
      }),
      { numRuns: 20 },
    )
  })
})
