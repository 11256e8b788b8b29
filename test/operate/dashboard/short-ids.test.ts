import { expect, test } from 'vitest'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { finish } from '../../cli/program.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import { receiverWith, send, untilDead } from './failing-receiver.ts'

const get = (page: Dashboard, place: string) => page.fetch(new Request(`http://localhost/${place}`))
const placeOf = async (page: Dashboard, typed: string) =>
  decodeURIComponent((await get(page, `find?q=${encodeURIComponent(typed)}`)).headers.get('location') ?? '')

async function failing() {
  const path = await freshPath()
  const receiver = receiverWith({ inbox: sqliteInbox({ path }), eventKey: ({ mediaId }) => `key of ${mediaId}` })
  await receiver.ready()
  receiver.onAny(() => Promise.reject(new Error('no room')), { name: 'publish' })
  for (const id of ['film-one', 'film-two', 'other']) await send(receiver, id)
  await untilDead(receiver, 3)
  return { path, receiver, page: dashboard(receiver, { authorize: () => true }) }
}

test('an event is found by the short id on its page and in lists, and a media item by the beginning of its id', async () => {
  const { page } = await failing()
  const html = await (await get(page, 'event?key=key+of+film-two')).text()
  const [, id = ''] = /Short id<\/dt><dd><code>([0-9a-f]{8})</.exec(html) ?? []
  expect(await (await get(page, 'events')).text()).toContain(`<code>${id}</code>`)
  expect(await placeOf(page, id)).toBe('/event?key=key+of+film-two')
  expect(await placeOf(page, 'key of other')).toBe('/event?key=key+of+other')
  expect(await placeOf(page, 'oth')).toBe('/media?id=other')
  expect(await placeOf(page, 'film')).toBe('/media?id=film')
  const begun = await (await get(page, 'media?id=film')).text()
  for (const media of ['film-one', 'film-two']) expect(begun).toContain(`href="/media?id=${media}"`)
  expect(await placeOf(page, '00000000')).toBe('/media?id=00000000')
})

test('the command line takes a short id for a key, and the beginning of a media id', async () => {
  const { path, receiver } = await failing()
  const { output } = await finish(['inbox', path, 'show', 'key of film-one'])
  const [, id = ''] = /^short id +([0-9a-f]{8})$/m.exec(output) ?? []
  expect((await finish(['inbox', path, 'show', id])).output).toBe(output)
  expect((await finish(['inbox', path, 'discard', id])).output).toContain('1 dead letter discarded')
  expect(await receiver.inbox.deadLetters.get('key of film-one')).toBeUndefined()
  expect((await finish(['inbox', path, 'media', 'film'])).output).toContain('film-two')
  expect((await finish(['inbox', path, 'media', 'f'])).code).toBe(0)
  expect((await finish(['inbox', path, 'show', '00000000'])).code).toBe(1)
})

test('a short id of two events names both, on the command line and on the page', async () => {
  const path = await freshPath()
  const receiver = receiverWith({ inbox: sqliteInbox({ path }), eventKey: ({ mediaId }) => mediaId })
  await receiver.ready()
  receiver.onAny(() => Promise.reject(new Error('no room')), { name: 'publish' })
  // The SHA-256 of both begins with 992462f1.
  for (const key of ['m13553', 'm23864']) await send(receiver, key)
  await untilDead(receiver, 2)
  const { code, errors } = await finish(['inbox', path, 'discard', '992462f1'])
  expect(code).toBe(1)
  expect(errors).toMatch(
    /^media-webhooks: 2 events have the short id 992462f1; give the key of one: (m13553 m23864|m23864 m13553)\n$/,
  )
  expect((await finish(['inbox', path, 'show', 'm13553'])).output).toMatch(/ replay m13553\n$/)
  const page = dashboard(receiver, { authorize: () => true })
  const place = await placeOf(page, '992462f1')
  expect(place).toBe('/media?id=992462f1')
  const html = await (await get(page, place.slice(1))).text()
  for (const key of ['m13553', 'm23864']) expect(html).toContain(`href="/event?key=${key}"`)
  expect((await receiver.inbox.stats()).deadLetters).toBe(2)
})
