import { expect, test } from 'vitest'
import { randomText } from '../../../../src/service/emulator/workspace/secret.ts'

test('a random text can stand on a command line: it begins with no dash', () => {
  const texts = Array.from({ length: 2_000 }, () => randomText(32))
  expect(texts.filter((text) => !/^\w[\w-]{42}$/.test(text))).toEqual([])
  expect(new Set(texts).size).toBe(2_000)
})
