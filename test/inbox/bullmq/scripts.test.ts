import { beforeEach, describe, expect, test } from 'vitest'
import { OwnKeys } from '../../../src/inbox/bullmq/own-keys.ts'
import { handledMark } from '../../../src/inbox/bullmq/scripts.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'

const hourMs = 3_600_000

describe.skipIf(!findRedis())('a step in Redis', () => {
  const redis = redisTests()
  let queues = 0
  let own: OwnKeys
  beforeEach(() => {
    own = new OwnKeys(redis.client, `queue ${++queues}`)
  })

  /** The time that a key has left: over half an hour, under a minute, none, or no key. */
  const left = async (name: string) => {
    const ms = await redis.client.pttl(own.of(name))
    if (ms < 0) return ms === -2 ? 'gone' : 'endless'
    return ms > hourMs / 2 ? 'long' : 'short'
  }
  const members = (name: string) => redis.client.zrange(own.of(name), 0, '-1')

  describe('with an event', () => {
    const remember = (id: string, token: string, ttlMs = hourMs) =>
      own.run<string>('remember', id, token, ttlMs, `member ${id}`)
    const end = (id: string) => own.run('end', id, hourMs, `member ${id}`)

    test('remembers who was first, for its time and at its place', async () => {
      expect(await remember('one', 'first')).toBe('first')
      expect(await remember('two', 'first')).toBe('first')
      expect(await remember('one', 'second', 1_000)).toBe('first')
      expect(await left('key:one')).toBe('long')
      expect(await members('events')).toEqual(['member one', 'member two'])
    })

    test('remembers its end, and forgets its place', async () => {
      await remember('one', 'first')
      await remember('two', 'first')
      await end('one')
      expect(await remember('one', 'second')).toBe(handledMark)
      expect(await left('key:one')).toBe('long')
      expect(await members('events')).toEqual(['member two'])
    })
  })

  test('keeps the newest unreadable deliveries, and replaces or removes one only as it was read', async () => {
    const keep = (key: string, data: string, at: number, replaces = 0) =>
      own.run('keepUnreadable', key, data, at, 2, replaces)
    const remove = (key: string, ...data: string[]) => own.run('removeUnreadable', key, ...data)
    const kept = () => redis.client.hgetall(own.of('unreadable-data'))
    await keep('a', 'first', 1)
    expect(await keep('a', 'second', 2)).toBe(0)
    expect(await kept()).toEqual({ a: 'first' })
    expect(await keep('a', 'second', 2, 1)).toBe(1)
    await keep('b', 'data', 3)
    await keep('c', 'data', 4)
    expect(await kept()).toEqual({ b: 'data', c: 'data' })
    expect(await members('unreadable')).toEqual(['b', 'c'])
    expect([await remove('b', 'other'), await remove('b', 'data'), await remove('b', 'data')]).toEqual([0, 1, 0])
    expect([await remove('c'), await remove('c')]).toEqual([1, 0])
    expect([await kept(), await members('unreadable')]).toEqual([{}, []])
  })

  describe('with expectations', () => {
    const farMs = Date.now() + hourMs
    interface Change {
      readonly at?: number
      readonly ends?: readonly string[]
      /** The deadlines of expectations by their ids, which begin with their places. */
      readonly begins?: Readonly<Record<string, number>>
      readonly data?: string
    }
    const apply = (event: string, { at = 1, ends = [], begins = {}, data = 'data' }: Change) => {
      const begun = Object.entries(begins).flatMap(([id, due]) => [id, due, data])
      return own.run('applyChanges', event, hourMs, hourMs, at, ends.length, ...ends, ...begun)
    }
    const take = (count = 10) => own.run<[string | null, [string, string][]]>('takeOverdue', count, hourMs)
    const open = () => members('expected')
    const data = () => redis.client.hgetall(own.of('expected-data'))

    test('applies the effects of an event once, and none once it was handled', async () => {
      await own.run('remember', 'one', 'token', hourMs, 'member')
      expect(await apply('one', { begins: { 'place:a': farMs } })).toBe(1)
      expect(await left('key:one')).toBe('long')
      await own.run('removeExpected', 'place:a')
      expect(await apply('one', { begins: { 'place:a': farMs } })).toBe(0)
      await own.run('end', 'two', hourMs, 'member')
      expect(await apply('two', { begins: { 'place:b': farMs } })).toBe(0)
      expect(await open()).toEqual([])
    })

    test('ends what began until then at a place, and remembers the latest end for a time', async () => {
      await apply('begins', { at: 3, begins: { 'place:a': farMs, 'other:b': farMs } })
      await apply('begins later', { at: 5, begins: { 'place:c': farMs } })
      await apply('ends', { at: 4, ends: ['place'] })
      expect(await open()).toEqual(['other:b', 'place:c'])
      expect(await members('expected-of:place')).toEqual(['place:c'])
      expect(Object.keys(await data()).toSorted()).toEqual(['other:b', 'place:c'])
      await apply('ends earlier', { at: 2, ends: ['place'] })
      await apply('was ended', { at: 4, begins: { 'place:d': farMs } })
      expect(await open()).toEqual(['other:b', 'place:c'])
      expect(await left('ended:place')).toBe('long')
    })

    test('leaves an expectation as it began first', async () => {
      await apply('one', { begins: { 'place:a': 1 }, data: 'first' })
      await apply('two', { begins: { 'place:a': farMs }, data: 'second' })
      expect((await take())[1]).toEqual([['place:a', 'first']])
    })

    test('gives what is overdue to one caller, and no end takes it back', async () => {
      await apply('one', { begins: { 'place:first': 1, 'place:second': 2, 'place:far': farMs } })
      expect((await take(1))[1]).toEqual([['place:first', 'data']])
      const [nextInMs, second] = await take()
      expect(second).toEqual([['place:second', 'data']])
      expect(Math.abs(Number(nextInMs) - hourMs)).toBeLessThan(hourMs / 2)
      expect((await take())[1]).toEqual([])
      await apply('ends', { at: 9, ends: ['place'] })
      expect((await open()).toSorted()).toEqual(['place:first', 'place:second'])
      for (const id of ['place:first', 'place:second']) await own.run('removeExpected', id)
      expect([await open(), await data(), await take()]).toEqual([[], {}, [null, []]])
    })

    test('tells the nearest deadline', async () => {
      await apply('one', { begins: { 'place:far': farMs, 'place:near': Date.now() + 60_000 } })
      const [nextInMs] = await take()
      expect(Number(nextInMs)).toBeLessThanOrEqual(60_000)
    })

    test('passes what Redis has evicted, and forgets it', async () => {
      await apply('one', { begins: { 'place:gone': 1, 'place:kept': 2 } })
      await redis.client.hdel(own.of('expected-data'), 'place:gone')
      expect((await take())[1]).toEqual([['place:kept', 'data']])
      expect(await open()).toEqual(['place:kept'])
    })
  })

  test('publishes handlers for the time of a lease, and removes one that no process has any more', async () => {
    const names = (...handlers: string[]) => handlers.map((name) => JSON.stringify(name))
    const json = (...handlers: string[]) => JSON.stringify(handlers.map((name) => ({ name })))
    const publish = (id: string, mine: string[], gone: string[] = [], leaseMs = hourMs) =>
      own.run<[string[], string[]]>('publishHandlers', id, leaseMs, hourMs, json(...mine), ...names(...mine, ...gone))
    expect(await publish('one', ['a', 'b'])).toEqual([[json('a', 'b')], []])
    await publish('two', ['a'])
    expect((await publish('one', [], ['a', 'b']))[1]).toEqual(names('b'))
    expect(await left('removed-handlers')).toBe('long')
    expect((await publish('one', ['b']))[1]).toEqual([])
    await publish('one', [], ['b'])
    await publish('two', [], ['a'], 1)
    expect(await left('handlers:one')).toBe('long')
    // A process that has crashed removes none.
    await publish('crashed', ['c'], [], 1)
    while ((await left('handlers:crashed')) !== 'gone');
    const [live, removed] = await publish('three', [])
    expect([live, removed.toSorted()]).toEqual([[json(), json()], names('a', 'b')])
    expect((await redis.client.smembers(own.of('processes'))).toSorted()).toEqual(['one', 'three'])
  })

  test('keeps activity for a time', async () => {
    await own.run('writeActivity', 'process', hourMs, 7, 'numbers')
    expect(await left('activity:7')).toBe('long')
  })
})
