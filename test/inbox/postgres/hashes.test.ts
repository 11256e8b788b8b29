import { expect, test } from 'vitest'
import { hashKey, hashMedia } from '../../../src/inbox/postgres/keys.ts'

test('keys and media have the hashes that databases hold', () => {
  expect(hashKey('one')).toBe('49e9fcfb5617aad332d56d58ffd0c702')
  expect(hashKey('\ud800')).toBe('8c0c59dd0d275aadcd462a5fe12eb352')
  expect(hashMedia('one')).toBe('5326066190753704659')
  expect(hashMedia('two')).toBe('-5161907078445923721')
})
