import { describe, expect, test, vi } from 'vitest'
import { recogniseAnyCopy } from '../../src/errors.ts'
import { fromBase64, toBase64 } from '../../src/internal/base64.ts'
import { ChurnMap } from '../../src/internal/churn-map.ts'
import { LazyAbort } from '../../src/internal/lazy-abort.ts'
import { isPromise, type MaybePromise } from '../../src/internal/maybe-promise.ts'
import { unlessAborted } from '../../src/internal/unless-aborted.ts'

describe('a ChurnMap', () => {
  test('holds the entries of a Map, in the order of their insertion', () => {
    const map = new ChurnMap<string, number>()
    for (const [key, value] of [
      ['one', 1],
      ['two', 2],
      ['one', 3],
    ] as const) {
      map.set(key, value)
    }
    expect([...map]).toEqual([
      ['one', 3],
      ['two', 2],
    ])
    expect([map.size, map.get('one'), map.get('three')]).toEqual([2, 3, undefined])
    expect([map.delete('one'), map.delete('one'), map.size]).toEqual([true, false, 1])
  })

  test('is empty at first, and after it was cleared', () => {
    const map = new ChurnMap<string, number>()
    expect([map.size, [...map]]).toEqual([0, []])
    map.set('one', 1)
    map.clear()
    expect([map.size, [...map]]).toEqual([0, []])
    map.set('two', 2)
    expect(map.size).toBe(1)
  })
})

describe('a LazyAbort', () => {
  test('keeps its first reason, whether its signal was read before or is read after', () => {
    for (const isRead of [true, false]) {
      const abort = new LazyAbort()
      if (isRead) expect(abort.signal.aborted).toBe(false)
      expect(abort.aborted).toBe(false)
      const reason = new Error('first')
      abort.abort(reason)
      abort.abort(new Error('second'))
      expect(abort.aborted).toBe(true)
      expect(abort.signal).toMatchObject({ aborted: true, reason })
      expect(abort.signal).toBe(abort.signal)
    }
  })
})

describe('unlessAborted', () => {
  const never = new Promise<never>(() => {})
  const reason = new Error('aborted')

  test('rejects with the reason of a signal that is aborted, before or meanwhile', async () => {
    await expect(unlessAborted(AbortSignal.abort(reason), never)).rejects.toBe(reason)
    const controller = new AbortController()
    const waiting = unlessAborted(controller.signal, never)
    controller.abort(reason)
    await expect(waiting).rejects.toBe(reason)
  })

  test('gives the result otherwise, and stops listening', async () => {
    const { signal } = new AbortController()
    const removed = vi.spyOn(signal, 'removeEventListener')
    expect(await unlessAborted(signal, 7)).toBe(7)
    expect(await unlessAborted(signal, Promise.resolve(8))).toBe(8)
    await expect(unlessAborted(signal, Promise.reject(reason))).rejects.toBe(reason)
    expect(removed.mock.calls.map(([type]) => type)).toEqual(['abort', 'abort', 'abort'])
  })
})

describe('a class of which there can be copies', () => {
  test('recognises the instances of every copy, and of nothing else', () => {
    const copy = () => {
      class Copied {}
      recogniseAnyCopy(Copied, 'Copied')
      return Copied
    }
    const [One, Two] = [copy(), copy()]
    class Special extends One {}
    class Other {}
    recogniseAnyCopy(Other, 'Other')
    expect(new Two()).toBeInstanceOf(One)
    expect(new Special()).toBeInstanceOf(Two)
    expect(new Special()).toBeInstanceOf(Special)
    expect(new One()).not.toBeInstanceOf(Special)
    for (const other of [new Other(), {}, null, undefined, 7]) expect(other instanceof One).toBe(false)
  })
})

test('base64 gives back any bytes', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
  expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'))
  expect(fromBase64(toBase64(bytes))).toEqual(bytes)
})

test.each([
  [Promise.resolve(), true],
  [{ then() {} }, true],
  [{ then: 1 }, false],
  [undefined, false],
  [null, false],
  ['then', false],
])('%o is a promise: %s', (value, expected) => {
  expect(isPromise(value as MaybePromise<unknown>)).toBe(expected)
})
