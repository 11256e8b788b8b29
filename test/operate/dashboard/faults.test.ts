import { expect, test } from 'vitest'
import type { ReadableInbox } from '../../../src/inbox/reading.ts'
import { createDashboard } from '../../../src/operate/dashboard/dashboard.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

async function overviewOf(stats: ReadableInbox['stats']) {
  const { logger, lines } = recordingLogger()
  const deadLetters = { list: () => [], get: () => undefined, replay: () => false, discard: () => false }
  const page = createDashboard({ inbox: { stats, deadLetters }, name: 'broken', logger }, { authorize: () => true })
  const response = await page.fetch(new Request('http://localhost/'))
  return { status: response.status, text: await response.text(), lines }
}

test('a fault of the page is a 500 that says so, and is logged with its stack', async () => {
  const { status, text, lines } = await overviewOf(() => undefined as never)
  expect(status).toBe(500)
  expect(text).toContain('The fault is in this page, and not in your inbox.')
  expect(text).not.toContain('cannot be reached')
  expect(lines).toMatchObject([{ level: 'error', message: 'the dashboard has a fault' }])
  expect(lines[0]?.details['err']).toHaveProperty('stack', expect.stringContaining('TypeError'))
})

test.each([
  ['an error of a driver', new Error('connection refused')],
  ['a failed fetch', new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') })],
])('%s is an outage of the inbox', async (_, error) => {
  const { status, text } = await overviewOf(() => Promise.reject(error))
  expect(status).toBe(503)
  expect(text).toContain('The inbox cannot be reached')
})
