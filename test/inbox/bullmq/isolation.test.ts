import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Isolation } from '../../../src/inbox/bullmq/isolation.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Makes a function that starts named runs, and the names of those in progress. The test ends the runs. */
function runsOf(isolation: Isolation) {
  const running = new Set<string>()
  const ends = new Map<string, () => void>()
  const run = (name: string) => async () => {
    running.add(name)
    await new Promise<void>((resolve) => ends.set(name, resolve))
    running.delete(name)
  }
  const flush = () => vi.advanceTimersByTimeAsync(0)
  return {
    beside: (name: string) => void isolation.beside(run(name)),
    alone: (name: string) => void isolation.alone(run(name)),
    async running() {
      await flush()
      return [...running]
    },
    end: (name: string) => ends.get(name)?.(),
  }
}

test('runs events side by side', async () => {
  const { beside, running } = runsOf(new Isolation())
  beside('a')
  beside('b')
  expect(await running()).toEqual(['a', 'b'])
})

test('runs one suspect at a time, once the others have ended and before later ones start', async () => {
  const { beside, alone, running, end } = runsOf(new Isolation())
  beside('a')
  alone('suspect 1')
  alone('suspect 2')
  beside('b')
  expect(await running()).toEqual(['a'])
  end('a')
  expect(await running()).toEqual(['suspect 1'])
  end('suspect 1')
  expect(await running()).toEqual(['suspect 2'])
  end('suspect 2')
  expect(await running()).toEqual(['b'])
})

test('lets the others continue after 10 s beside a suspect that runs for long', async () => {
  const { beside, alone, running, end } = runsOf(new Isolation())
  alone('suspect')
  beside('a')
  await vi.advanceTimersByTimeAsync(9_000)
  expect(await running()).toEqual(['suspect'])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(await running()).toEqual(['suspect', 'a'])
  alone('another')
  end('suspect')
  expect(await running()).toEqual(['a'])
  beside('b')
  expect(await running()).toEqual(['a'])
  end('a')
  expect(await running()).toEqual(['another'])
  end('another')
  expect(await running()).toEqual(['b'])
})

test('waits until every other event has ended', async () => {
  const { beside, alone, running, end } = runsOf(new Isolation())
  beside('a')
  beside('b')
  alone('suspect')
  await running()
  end('a')
  expect(await running()).toEqual(['b'])
  end('b')
  expect(await running()).toEqual(['suspect'])
})

test('starts a suspect after 10 s although another event still runs', async () => {
  const { beside, alone, running } = runsOf(new Isolation())
  beside('a')
  alone('suspect')
  await vi.advanceTimersByTimeAsync(11_000)
  expect(await running()).toEqual(['a', 'suspect'])
})

test('starts the next event when a suspect fails', async () => {
  const isolation = new Isolation()
  const { beside, running } = runsOf(isolation)
  const failed = isolation.alone(() => Promise.reject(new Error('no')))
  beside('a')
  await expect(failed).rejects.toThrow('no')
  expect(await running()).toEqual(['a'])
})
