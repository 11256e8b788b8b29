import { expect, test, vi } from 'vitest'
import { Accepting } from '../../../src/inbox/postgres/accepting.ts'
import type { Database } from '../../../src/inbox/postgres/database.ts'
import { eventOf } from '../../../src/testing/contract/handling.ts'

/** A database that gives these answers to statements, one after another. */
function answering(...answers: readonly (Error | { hash: string }[])[]): Database {
  const query = vi.fn<() => Promise<unknown>>()
  for (const answer of answers)
    if (answer instanceof Error) query.mockRejectedValueOnce(answer)
    else query.mockResolvedValueOnce(answer)
  const measure = (_: string, run: () => unknown) => run()
  return { schema: '"media_webhooks"', checkReady() {}, query, measure } as unknown as Database
}

const cutOff = new Error('Connection terminated unexpectedly')

test('an event whose first answer was lost is looked for, though it is known the second time', async () => {
  const stored = vi.fn()
  const accepting = new Accepting(answering(cutOff, []), ['channel', 'sender'], 2_000, stored)
  expect(await accepting.add(eventOf('one'))).toBe(false)
  expect(stored).toHaveBeenCalledOnce()
})

test('nobody looks for an event that was known at once', async () => {
  const stored = vi.fn()
  const accepting = new Accepting(answering([]), ['channel', 'sender'], 2_000, stored)
  expect(await accepting.add(eventOf('one'))).toBe(false)
  expect(stored).not.toHaveBeenCalled()
})
