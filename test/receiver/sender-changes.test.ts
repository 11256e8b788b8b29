import { describe, expect, test } from 'vitest'
import { anyOf, type Handlers, headerToken, hmacSignature, urlToken, type Verifier } from '../../src/index.ts'
import { deliver } from '../../src/testing/index.ts'
import { flat } from '../events/received.ts'
import { listening, receiverWith } from './listening-receiver.ts'

/** Makes a receiver, and a function that delivers to it and returns the warnings of the delivery. */
function watched(handlers: Handlers = { 'encoding.finished': () => {} }) {
  const { lines, options } = listening()
  const receiver = receiverWith({ ...options, handlers })
  return async (fields: object) => {
    lines.length = 0
    const { handled, status } = await deliver(receiver, JSON.stringify({ ...flat, ...fields }))
    await handled
    expect(status).toBe(200)
    return lines.filter(({ level }) => level === 'warn')
  }
}

test('a field of an unexpected JSON type is a warning the first time, without its value', async () => {
  const warnings = watched()
  const found = await warnings({ title: { marker: 'sent-71c3' } })
  expect(found).toMatchObject([{ message: expect.stringContaining('field title'), details: { field: 'title' } }])
  expect(JSON.stringify(found)).not.toContain('sent-71c3')
  expect(await warnings({ title: 7 })).toEqual([])
  expect(await warnings({ title: [], status: 7 })).toMatchObject([{ details: { field: 'status' } }])
})

test('an unknown type that no handler receives is a warning the first time', async () => {
  const warnings = watched()
  const warning = {
    message: 'events of an unknown type are ignored: only onAny receives them',
    details: { type: 'thumbnail.finished' },
  }
  expect(await warnings({ type: 'thumbnail.finished' })).toMatchObject([warning])
  expect(await warnings({ type: 'thumbnail.finished' })).toEqual([])
  expect(await warnings({ type: 'thumbnail.failed' })).toMatchObject([{ details: { type: 'thumbnail.failed' } }])
})

test('a known type that no handler receives does not warn, and neither does an unknown one that onAny receives', async () => {
  expect(await watched()({ type: 'encoding.failed' })).toEqual([])
  const { lines, options } = listening()
  const receiver = receiverWith(options).onAny(() => {})
  await (await deliver(receiver, JSON.stringify({ ...flat, type: 'thumbnail.finished' }))).handled
  expect(lines.filter(({ level }) => level === 'warn')).toEqual([])
})

test('types that a sender makes up cause a limited number of warnings', async () => {
  const warnings = watched()
  let count = 0
  for (let i = 0; i < 200; i++) count += (await warnings({ type: `made.up.${i}` })).length
  expect(count).toBe(100)
  // They leave room for the warnings of fields, which are few.
  expect(await warnings({ title: 7 })).toMatchObject([{ details: { field: 'title' } }])
})

describe('a header that looks like a signature', () => {
  /** Makes a receiver, and a function that delivers with a header and returns the warnings so far. */
  function verifying(verify: Verifier) {
    const { lines, options } = listening()
    const receiver = receiverWith({ ...options, verify, handlers: {} })
    return async (header: string, path = '/?token=s3cret') => {
      const headers = new Headers({ [header]: 'sent-71c3' })
      const body = new TextEncoder().encode(JSON.stringify(flat))
      await receiver.receive({ method: 'POST', url: path, headers, body })
      return lines.filter(({ level, details }) => level === 'warn' && 'header' in details)
    }
  }
  const inUrl = urlToken({ secret: 's3cret' })

  test('is a warning once, without its value, if the verifier does not read it', async () => {
    const warnings = verifying(inUrl)
    expect(await warnings('content-language')).toEqual([])
    const found = await warnings('X-Signature')
    const message = expect.stringMatching(/header x-signature, which urlToken does not check/)
    expect(found).toMatchObject([{ message, details: { header: 'x-signature' } }])
    expect(JSON.stringify(found)).not.toContain('sent-71c3')
    expect(await warnings('webhook-signature')).toEqual(found)
  })

  test('does not warn on a delivery that is not verified', async () => {
    expect(await verifying(inUrl)('x-signature', '/?token=wrong')).toEqual([])
  })

  test.each<[string, Verifier]>([
    ['reads it', headerToken({ secret: 'sent-71c3', header: 'X-Signature' })],
    [
      'reads it later',
      {
        name: 'own',
        needsBytes: false,
        verify: async ({ headers }) => ({ verified: true, eventId: headers.get('X-SIGNATURE') ?? '' }),
      },
    ],
    ['verifies the bytes', { name: 'own', needsBytes: true, verify: () => ({ verified: true }) }],
    ['may verify the bytes', anyOf(inUrl, hmacSignature({ secret: 's3cret', header: 'x-hub-signature' }))],
  ])('does not warn if the verifier %s', async (_, verify) => {
    expect(await verifying(verify)('x-signature')).toEqual([])
  })

  test('is looked for in the first hundred deliveries only', async () => {
    const warnings = verifying(inUrl)
    for (let i = 0; i < 100; i++) await warnings('accept')
    expect(await warnings('x-signature')).toEqual([])
  })
})
