import { expect, test } from 'vitest'
import { RetryAfter } from '../../../src/index.ts'
import { dashboard } from '../../../src/operate/dashboard/index.ts'
import { receiverWith, send } from './failing-receiver.ts'

/** The page of the second event of a media item, whose first one waits for its retry. */
async function pageOfSecond(order: 'loose' | 'strict') {
  const receiver = receiverWith({ order })
  receiver.on('encoding.started', () => {
    throw new RetryAfter('60 s')
  })
  receiver.on('encoding.finished', () => new Promise(() => {}))
  await send(receiver, 'a-film', { type: 'encoding.started' })
  await expect.poll(async () => (await receiver.inbox.stats()).retrying).toBe(1)
  await send(receiver, 'a-film')
  const { events = [] } = (await receiver.inbox.events?.list({ type: 'encoding.finished' })) ?? {}
  const page = dashboard(receiver, { authorize: () => true })
  const address = `http://localhost/event?key=${encodeURIComponent(events[0]?.key ?? '')}`
  return (await page.fetch(new Request(address))).text()
}

test('in a strict order, the page of a waiting event says which one it waits behind', async () => {
  const html = await pageOfSecond('strict')
  expect(html).toContain('Waits behind')
  expect(html).toMatch(/href="[^"]*event\?key=[^"]*encoding\.started/)
})

test('in a loose order, no event waits behind another one that is retried', async () => {
  expect(await pageOfSecond('loose')).not.toContain('Waits behind')
})
