import { expect, test } from 'vitest'
import { hashKey, shortHash } from '../../../src/inbox/sqlite/hash.ts'

const keyAt = (time: string) => JSON.stringify(['encoding.finished', 'media', 'user', time, '', 'done'])

test('keys without a time have the hash of their JSON, which tells lone surrogates apart', () => {
  expect(hashKey('one')).toBe('Sen8-1YXqtMy1W1Y_9DHAg')
  expect(hashKey('\ud800')).not.toBe(hashKey('\ud801'))
})

test('keys with a time have hashes in its order, behind all others', () => {
  const times = [
    '1970-01-01T00:00:00Z',
    '2026-03-01T12:00:00.123456789Z',
    '2026-03-01T12:00:01Z',
    '9999-12-31T23:59:59Z',
  ]
  const hashes = times.map((time) => hashKey(keyAt(time)))
  expect(hashes.toSorted()).toEqual(hashes)
  expect(hashes[1]).toBe('~0tb7yo0wsvtyZsDe3weJHAi')
  expect(hashes.every((hash) => hash > 'z')).toBe(true)
})

test('two keys of one second have two hashes', () => {
  expect(hashKey(keyAt('2026-03-01T12:00:00.1Z'))).not.toBe(hashKey(keyAt('2026-03-01T12:00:00.2Z')))
})

test.each(['2026-13-01T12:00:00Z', '1969-12-31T23:59:59Z', '2026-03-01T25:00:00Z', '2026-03-01'])(
  'a key with %s, which is not a time to sort by, has the hash of one without',
  (time) => {
    expect(hashKey(keyAt(time))).toBe(shortHash(JSON.stringify(keyAt(time))))
  },
)
