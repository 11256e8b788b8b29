import { expect, onTestFinished, test, vi } from 'vitest'
import { BatchReader, ByteLimit } from '../../../src/inbox/sql/batch-reader.ts'

const database = {
  failure: (error: unknown) => (/timeout/.test(`${error}`) ? ('timeout' as const) : ('transient' as const)),
}

const rowsOf = (count: number, length: number) => Array.from({ length: count }, () => ({ text: 'x'.repeat(length) }))

test('a batch grows with small rows, up to its maximum, and shrinks with large ones', async () => {
  const reader = new BatchReader(database, 500)
  for (let read = 0; read < 5; read++) await reader.run(async (size) => rowsOf(size, 10))
  expect(reader.size).toBe(500)
  await reader.run(async (size) => rowsOf(size, 100_000))
  expect(reader.size).toBe(10)
})

test('after a timeout, half as many rows are tried, until a single one takes too long', async () => {
  const sizes: number[] = []
  const step = async (size: number) => {
    sizes.push(size)
    throw new Error('Query read timeout')
  }
  await expect(new BatchReader(database, 500).run(step)).rejects.toThrow('timeout')
  expect(sizes).toEqual([16, 8, 4, 2, 1])
})

test('another failure is not tried again', async () => {
  let tries = 0
  const step = async () => {
    tries++
    throw new Error('Connection terminated unexpectedly')
  }
  await expect(new BatchReader(database, 500).run(step)).rejects.toThrow('terminated')
  expect(tries).toBe(1)
})

test('after a timeout, batches stay small for a minute', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const reader = new BatchReader(database, 500)
  let timeouts = 0
  const step = async (size: number) => {
    if (size * 60_000 > 600_000) {
      timeouts++
      throw new Error('Query read timeout')
    }
    return rowsOf(size, 60_000)
  }
  for (let read = 0; read < 20; read++) await reader.run(step)
  expect(timeouts).toBe(1)
  vi.advanceTimersByTime(61_000)
  for (let read = 0; read < 20; read++) await reader.run(step)
  expect(timeouts).toBe(2)
})

test('a statement ends with the item that reaches a megabyte, and with half of one that took too long', () => {
  const limit = new ByteLimit()
  const items = ['é'.repeat(200_000), 'x'.repeat(500_000), 'x'.repeat(200_000), 'x'.repeat(10)]
  const fitting = () => limit.fitting(items, (item) => Buffer.byteLength(item))
  expect(fitting()).toBe(3)
  limit.exceeded(1_100_000)
  expect(fitting()).toBe(2)
  limit.exceeded(800_000)
  limit.exceeded(800_000)
  expect(fitting()).toBe(1)
  expect(limit.fitting([], () => 1)).toBe(0)
})
