import { expect, test } from 'vitest'
import type { Handler } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { ownTime } from '../../support/own-time.ts'
import { crashed, freshPath, receiverOver, started } from './sqlite-tests.ts'

// After a crash only what has run may be the cause: not what was held, read, or waited.

const retryIn = (delayMs: number) => ({ status: 'retry', delayMs, completed: [], failures: [] }) as const

test('events that wait for the limit of a handler are not suspected, however often their process ends', async () => {
  const titles = Array.from({ length: 8 }, (_, index) => `m${index}`)
  let isOver = false
  const handled: string[] = []
  const handler: Handler = async ({ mediaId }, { signal }) => {
    if (isOver) return void handled.push(mediaId)
    await new Promise((_, reject) => signal.addEventListener('abort', reject))
  }
  const open = (path: string) => receiverOver({ path }).onAny(handler, { concurrency: 1 })
  let path = await freshPath()
  let receiver = open(path)
  for (const mediaId of titles) await deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId }))
  for (let lives = 1; lives <= 10; lives++) {
    await until(async () => (await receiver.inbox.stats()).running > 0)
    path = await crashed(path)
    isOver = lives === 10
    receiver = open(path)
  }
  await until(async () => handled.length === titles.length)
  expect(handled.toSorted()).toEqual(titles)
  expect(await receiver.inbox.stats()).toMatchObject({ deadLetters: 0 })
})

test('an event is a dead letter after ten crashes, although a retry before it ends in each life', async () => {
  let path = await freshPath()
  let { inbox, calls } = started({ path })
  await inbox.accept(eventOf('retried', 'media'))
  await inbox.accept(eventOf('fatal', 'media'))
  let crashes = 0
  for (;;) {
    const dead = async () => (await inbox.stats()).deadLetters === 1
    await until(async () => calls.hasStarted || (await dead()))
    if (await dead()) break
    const call = await calls.next()
    if (call.event.key === 'retried') {
      call.finish(retryIn(100))
      continue
    }
    crashes++
    path = await crashed(path)
    ;({ inbox, calls } = started({ path }))
  }
  expect(crashes).toBe(10)
  expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['fatal'])
})

test('the events of other media items are handled right after two crashes, while a retry waits', async () => {
  const path = await freshPath()
  const first = started({ path })
  await first.inbox.accept(eventOf('retried', 'media'))
  ;(await first.calls.next()).finish(retryIn(3_600_000))
  await until(async () => (await first.inbox.stats()).retrying === 1)
  await first.inbox.accept(eventOf('behind', 'media'))
  for (let index = 0; index < 320; index++) await first.inbox.accept(eventOf(`key ${index}`, `media ${index % 20}`))
  await first.calls.next()
  const copy = await crashed(path)
  await started({ path: copy }).calls.next()
  const { inbox, calls } = started({ path: await crashed(copy) })
  const elapsed = ownTime()
  for (let index = 0; index < 321; index++) (await calls.next()).finish()
  expect(elapsed()).toBeLessThan(10_000)
  await until(async () => (await inbox.stats()).running === 0)
  expect(await inbox.stats()).toMatchObject({ waiting: 0, retrying: 1, deadLetters: 0 })
})
