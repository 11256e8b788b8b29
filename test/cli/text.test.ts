import { expect, test } from 'vitest'
import { table } from '../../src/cli/shared/text.ts'

test('a very long cell moves the rest of its own row, and no other row', () => {
  const long = 'x'.repeat(500)
  expect(
    table([
      ['media', 'attempts'],
      ['a-film', '1'],
      [long, '2'],
    ]),
  ).toBe(`media   attempts\na-film  1\n${long}  2`)
})

test('a table of one very long cell has no padding', () => {
  const long = 'x'.repeat(500)
  expect(table([[long, '2']])).toBe(`${long}  2`)
})
