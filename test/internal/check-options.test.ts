import { describe, expect, test } from 'vitest'
import {
  anyText,
  checkOptions,
  flag,
  headerName,
  oneOf,
  required,
  timeLimit,
  wholeNumber,
} from '../../src/internal/check-options.ts'

const check = (options: unknown, rules: object) => () => checkOptions('owner', options as object, rules as never)

const invalid = (message: string) => expect.objectContaining({ code: 'invalid_option', message })

describe('the check of options', () => {
  test.each([null, 7, 'text', true, () => {}, [], [1]])('rejects %o in place of the options', (options) => {
    expect(check(options, { ms: wholeNumber() })).toThrow(
      invalid('owner: the options must be an object, such as { ms }'),
    )
  })

  test('rejects an option that does not exist, and names those that do', () => {
    expect(check({ typo: 1 }, { ms: wholeNumber(), by: anyText })).toThrow(
      invalid('owner: there is no option typo; there are ms, by'),
    )
    expect(check({ toString: 1 }, { ms: wholeNumber() })).toThrow(/no option toString/)
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, '7', null, 7n])(
    'rejects %o as a whole number',
    (ms) => {
      const message = 'owner: ms must be a whole number from 1 to 2147483647'
      expect(check({ ms }, { ms: wholeNumber() })).toThrow(invalid(message))
    },
  )

  test.each([1, 2 ** 31 - 1, undefined])('takes %o as a whole number', (ms) => {
    expect(check({ ms }, { ms: wholeNumber() })).not.toThrow()
  })

  test('takes a whole number between given limits', () => {
    const rules = { port: wholeNumber(10, 0) }
    expect(check({ port: 0 }, rules)).not.toThrow()
    expect(check({ port: 10 }, rules)).not.toThrow()
    expect(check({ port: 11 }, rules)).toThrow(invalid('owner: port must be a whole number from 0 to 10'))
  })

  test.each([-1, Number.NaN, '7', null])('rejects %o as a time limit', (ms) => {
    expect(check({ ms }, { ms: timeLimit })).toThrow(/0 or more/)
    expect(check({ ms: Number.POSITIVE_INFINITY }, { ms: timeLimit })).not.toThrow()
  })

  test('asks for what is required', () => {
    const rules = { secret: required(anyText), by: anyText }
    for (const options of [undefined, {}, { secret: undefined }])
      expect(check(options, rules)).toThrow(invalid('owner: secret must be a string'))
    expect(check({ secret: '' }, rules)).not.toThrow()
  })

  test('rejects another choice, and other types', () => {
    expect(check({ in: 'c' }, { in: oneOf('a', 'b') })).toThrow(invalid('owner: in must be one of a, b'))
    for (const value of ['no', 0, 1, null]) expect(check({ value }, { value: flag })).toThrow(/true or false/)
  })

  test.each(['', 'x y', 'x:', 'ü', 7])('rejects the header %o', (name) => {
    expect(check({ name }, { name: headerName })).toThrow(/the name of a header, such as x-signature/)
    expect(check({ name: 'X-Signature' }, { name: headerName })).not.toThrow()
  })
})
