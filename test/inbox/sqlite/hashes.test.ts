import { expect, test } from 'vitest'
import { hashKey } from '../../../src/inbox/sqlite/hash.ts'

test('keys have the hashes that are in the files of earlier versions', () => {
  expect(hashKey('one')).toBe('Sen8-1YXqtMy1W1Y_9DHAg')
  expect(hashKey('\ud800')).toBe('jAxZ3Q0nWq3NRipf4S6zUs')
})
