import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { equalText } from '../../src/verify/equal-text.ts'

const text = fc.string({ unit: 'binary', maxLength: 40 })

describe('equalText', () => {
  test('says that two texts are equal exactly when they are', () => {
    fc.assert(fc.property(text, text, (a, b) => equalText(a, b) === (a === b)))
    fc.assert(fc.property(text, (a) => equalText(a, a)))
  })

  test('finds a change at any place', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.nat(), fc.integer({ min: 1, max: 0xffff }), (text, at, change) => {
        const index = at % text.length
        const changed =
          text.slice(0, index) + String.fromCharCode(text.charCodeAt(index) ^ change) + text.slice(index + 1)
        return !equalText(changed, text) && !equalText(text, changed)
      }),
    )
  })

  test.each([
    ['', 'a'],
    ['a', ''],
    ['abc', 'abcd'],
    ['abcd', 'abc'],
    ['a', 'a\u0000'],
    ['\u0000', ''],
    ['', '\u0000\u0000'],
    // Lengths that differ by a power of two beyond any code unit.
    ['a'.repeat(65_536), ''],
  ])('tells %o from %o by their lengths', (a, b) => {
    expect(equalText(a, b)).toBe(false)
    expect(equalText(b, a)).toBe(false)
  })
})
