import { describe, expect, test } from 'vitest'
import { serveWebhook } from '../../support/serve.ts'
import { answering, api, emulate, subscribe } from './started-emulator.ts'

/** Counts the requests to a receiver that answers with a status, or never. */
async function counting(status?: number) {
  const asked = { count: 0 }
  const answer = status === undefined ? () => {} : answering(status)
  const url = await serveWebhook((request, response) => {
    asked.count += 1
    answer(request, response)
  })
  return { url, asked }
}

describe('a webhook that is deleted', () => {
  test('receives no retry, and its events count as given up', async () => {
    const emulator = await emulate({ timeScale: 1 })
    const { url, asked } = await counting(500)
    const { id } = await subscribe(emulator, url, ['file_received'])
    emulator.addMedia()
    await expect.poll(() => emulator.sendings()[0]?.state).toBe('retrying')
    expect(emulator.sendings()[0]?.deliveries).toMatchObject([{ retryInMs: 3_000 }])

    await api(emulator, 'DELETE', `/webhooks/${id}`)
    await expect.poll(() => emulator.sendings()[0]?.state).toBe('failed')
    const [sending] = emulator.sendings()
    expect(sending?.deliveries).toHaveLength(1)
    expect(sending?.deliveries[0]).not.toHaveProperty('retryInMs')
    expect(asked.count).toBe(1)
    const page = await (await fetch(`${emulator.url}/?sending=${sending?.id}`)).text()
    expect(page.includes('it does not send the event again')).toBe(true)
  })

  test.each(['delay', 'reorder'] as const)('receives no event that the fault %s holds back', async (fault) => {
    const emulator = await emulate({ timeScale: 1 })
    const { url, asked } = await counting(200)
    const { id } = await subscribe(emulator, url, ['file_received'])
    emulator.behave(id, { fault })
    emulator.addMedia()
    await api(emulator, 'DELETE', `/webhooks/${id}`)
    await expect.poll(() => emulator.sendings()[0]?.state).toBe('failed')
    expect(asked.count).toBe(0)
    const page = await (await fetch(`${emulator.url}/?sending=${emulator.sendings()[0]?.id}`)).text()
    expect(page.includes('No delivery was made.')).toBe(true)
  })

  test('gets the end of the delivery in progress, and neither the copy nor the retry after it', async () => {
    const emulator = await emulate()
    const ends: (() => void)[] = []
    const url = await serveWebhook((_, response) => void ends.push(() => response.end('late')))
    const { id } = await subscribe(emulator, url, ['file_received'])
    emulator.behave(id, { fault: 'duplicate' })
    emulator.addMedia()
    await expect.poll(() => ends.length).toBe(1)
    await api(emulator, 'DELETE', `/webhooks/${id}`)
    ends[0]?.()
    await emulator.settled()
    expect(emulator.sendings()).toMatchObject([{ state: 'acknowledged', deliveries: [{ answer: { body: 'late' } }] }])
    expect(ends).toHaveLength(1)
  })

  test('does not end the events of another webhook', async () => {
    const emulator = await emulate()
    const { url, asked } = await counting(500)
    const [kept, deleted] = [await subscribe(emulator, url, ['file_received']), await subscribe(emulator, url)]
    await api(emulator, 'DELETE', `/webhooks/${deleted.id}`)
    emulator.addMedia()
    await emulator.settled()
    expect(emulator.sendings()).toMatchObject([{ webhookId: kept.id, deliveries: [{}, {}, {}, {}] }])
    expect(asked.count).toBe(4)
  })
})
