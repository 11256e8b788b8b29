import { expect } from 'vitest'
import type { Receiver } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { until } from '../support/inbox.ts'

/** The storage of an inbox, which a test can keep from writing. */
export interface Blockable {
  block(): Promise<unknown> | unknown
  unblock(): Promise<unknown> | unknown
  /** Reads the names of the handlers of the one event that are stored as completed. */
  completed(): Promise<readonly string[]> | readonly string[]
}

/**
 * Checks that a handler begins only once the success of the previous one is stored. A crash in between would run the
 * previous one twice.
 */
export async function checkProgressIsStored(
  receiver: Receiver,
  { block, unblock, completed }: Blockable,
): Promise<void> {
  const begun: string[] = []
  const seen: (readonly string[])[] = []
  const first = async () => {
    await block()
    begun.push('first')
  }
  receiver.onAny(first, { name: 'first' })
  const second = async () => {
    begun.push('second')
    seen.push(await completed())
  }
  receiver.onAny(second, { name: 'second' })
  expect((await deliver(receiver, samplePayload('encoding.finished'))).status).toBe(200)
  await until(async () => begun.length > 0)
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(begun).toEqual(['first'])
  await unblock()
  await until(async () => seen.length === 1)
  expect(begun).toEqual(['first', 'second'])
  expect(seen).toEqual([['first']])
}
