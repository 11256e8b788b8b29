import { expect, test } from 'vitest'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

test('a commit of many deliveries accepts each event once, in their order, and knows those of earlier commits', async () => {
  const { inbox, calls } = started({ path: await freshPath(), concurrency: 1_000 })
  const accept = (keys: readonly string[]) =>
    Promise.all(keys.map((key) => inbox.accept(eventOf(key, `media of ${key}`))))
  await accept(['key 3', 'key 70', 'key 149'])
  for (let i = 0; i < 3; i++) (await calls.next()).finish()
  await until(async () => (await inbox.events?.get('key 149'))?.state === 'handled')
  const keys = Array.from({ length: 150 }, (_, index) => `key ${index}`)
  // Two of them arrive twice: side by side, and far apart.
  const sent = [...keys.slice(0, 10), 'key 9', ...keys.slice(10), 'key 0']
  const seen = new Set(['key 3', 'key 70', 'key 149'])
  const expected = sent.map((key) => {
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew ? 'accepted' : 'duplicate'
  })
  expect(await accept(sent)).toEqual(expected)
  for (let i = 0; i < 147; i++) (await calls.next()).finish()
  await until(async () => (await inbox.stats()).running === 0)
  const { events = [] } = (await inbox.events?.list({ order: 'oldest', limit: 1_000 })) ?? {}
  const inOrder = ['key 3', 'key 70', 'key 149', ...keys.filter((key) => !['key 3', 'key 70', 'key 149'].includes(key))]
  expect(events.map(({ key, mediaId, state }) => [key, mediaId, state])).toEqual(
    inOrder.map((key) => [key, `media of ${key}`, 'handled']),
  )
})
