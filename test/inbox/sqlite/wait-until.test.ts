import { expect, test } from 'vitest'
import { eventOf } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

test('a platform that waits is given a promise that lasts until the event was handled, retries included', async () => {
  const { inbox, calls } = started({ path: await freshPath() })
  const waited: Promise<unknown>[] = []
  let hasEnded = false
  const waitUntil = (promise: Promise<unknown>) => {
    waited.push(promise)
    void promise.then(() => {
      hasEnded = true
    })
  }
  expect(await inbox.accept(eventOf('one'), { waitUntil })).toBe('accepted')
  expect(await inbox.accept(eventOf('one'), { waitUntil })).toBe('duplicate')
  expect(waited).toHaveLength(1)
  ;(await calls.next()).finish({ status: 'retry', delayMs: 1, completed: [], failures: [] })
  const second = await calls.next()
  expect(hasEnded).toBe(false)
  second.finish()
  await waited[0]
})

test('the promise ends when the inbox closes before the event was handled', async () => {
  const { inbox, calls } = started({ path: await freshPath() })
  const waited: Promise<unknown>[] = []
  await inbox.accept(eventOf('one'), { waitUntil: (promise) => void waited.push(promise) })
  await calls.next()
  await inbox.close({ timeoutMs: 0 })
  await waited[0]
})
