import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { exactNumbers, writeRounded } from '../../src/events/exact-numbers.ts'
import { createReceiver, defineSender, unverified } from '../../src/index.ts'
import { silent } from '../support/silent.ts'
import { receiving } from './senders.ts'

describe('a number in JSON', () => {
  test.each([
    '9007199254740992',
    '-9007199254740993',
    '820982911946154508',
    '1.00000000000000001',
    '12345678901234567.89',
    '3.14159265358979323846',
    '1e400',
    '-1e-400',
    '123456789012345678e-3',
  ])('becomes a text if JavaScript would round it: %s', (number) => {
    expect(exactNumbers(`{"a":[${number}]}`)).toBe(`{"a":["${number}"]}`)
  })

  test.each([
    '9007199254740991',
    '0',
    '-0',
    '0.000',
    '1.50',
    '1e3',
    '1E+2',
    '0.1',
    '1e-7',
    '0.30000000000000004',
    '5e-324',
    '100000000000000.25',
  ])('stays one if it is exact: %s', (number) => {
    expect(exactNumbers(`[${number},"2026-03-01T10:00:00.123456789Z"]`)).toContain(`[${number},`)
  })

  test('is not looked for in texts', () => {
    const texts = ['820982911946154508', 'a "820982911946154508" b', '\\820982911946154508', '"', '\\"1e400\\']
    const json = JSON.stringify({ texts, '820982911946154508': 1 })
    expect(exactNumbers(json)).toBe(json)
  })

  test('is found in a text of any length, in time', () => {
    const json = JSON.stringify({ text: 'x\\"'.repeat(1_000_000), id: 7 }).replace('7}', '820982911946154508}')
    expect(JSON.parse(exactNumbers(json)).id).toBe('820982911946154508')
  })

  test('that JavaScript has written is not changed, but for integers beyond 2^53', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string(), (number, text) => {
        fc.pre(!/^-?\d{16,}$/.test(String(number)))
        const json = JSON.stringify({ [text]: [number, text] })
        expect(exactNumbers(json)).toBe(json)
      }),
    )
  })

  test('that a parser may have rounded is marked as such, and means the same', () => {
    expect(writeRounded([820982911946154500, 7, '820982911946154508', 1e21])).toBe(
      '[820982911946154500.0,7,"820982911946154508",1e+21]',
    )
    expect(exactNumbers('[820982911946154500.0]')).toBe('[820982911946154500.0]')
  })
})

const orders = defineSender({
  name: 'orders',
  events: { order: z.object({ total: z.number() }) },
  read: ({ id, ...data }) => ({ type: 'order', mediaId: id, id, data }),
})

test('an id that arrives as a number has all its digits', async () => {
  const { handled, send } = receiving(orders)
  for (const id of ['820982911946154508', '820982911946154509'])
    expect(await send(`{"id":${id},"total":9.95}`)).toMatchObject({ outcome: 'accepted' })
  expect(handled.map(({ key }) => key)).toEqual(['820982911946154508', '820982911946154509'])
})

test('an id that a body parser has rounded is no id: the delivery is answered 400, and says why', async () => {
  const receiver = createReceiver({
    sender: orders,
    verify: unverified(),
    logger: silent,
    handlers: { order: () => {} },
  })
  const parsed = JSON.parse('{"id":820982911946154508,"total":1}')
  const answer = await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body: { parsed } })
  expect(answer).toMatchObject({ status: 400 })
  expect(JSON.parse(answer.body).message).toContain('field mediaId: the number was rounded by a body parser')
  const [{ key } = { key: '' }] = await receiver.inbox.deadLetters.list()
  await expect(receiver.inbox.deadLetters.replay(key)).rejects.toThrow(/rounded/)
})
