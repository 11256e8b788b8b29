import { expect, test } from 'vitest'
import { dashboard } from '../../../src/operate/dashboard/index.ts'
import { mux, ready, receiving } from '../../events/senders.ts'

/** Opens the dashboard of a receiver for Mux whose handler fails. */
async function failing() {
  const { receiver, send, deadLetters } = receiving(mux, { retry: { attempts: 1 } })
  receiver.onAny(() => Promise.reject(new Error('no room')), { name: 'publish' })
  const page = dashboard(receiver, { path: '/', authorize: () => true })
  const read = async (place: string) => (await page.fetch(new Request(`http://localhost/${place}`))).text()
  return { send, deadLetters, read }
}

test('the dashboard offers the types of a sender of your own, and shows its events', async () => {
  const { send, read } = await failing()
  await send(ready())
  const list = await read('events')
  expect(list).toContain('<option value="video.asset.errored">')
  expect(list).not.toContain('encoding.finished')
  expect(list).toContain('asset-1')
  const event = await read('event?key=event-1')
  for (const text of ['video.asset.ready', 'asset-1', 'no room', '&quot;duration&quot;: 7'])
    expect(event).toContain(text)
})

test('the dashboard shows what its schema rejects, with the path and the body', async () => {
  const { send, deadLetters, read } = await failing()
  await send(ready({ data: { id: 'asset-1', duration: 'long' } }))
  const [kept] = await deadLetters.list()
  const page = await read(`event?key=${encodeURIComponent(kept?.key ?? '')}`)
  for (const text of ['field data.duration: does not match its schema', '&quot;duration&quot;:&quot;long&quot;'])
    expect(page).toContain(text)
})
