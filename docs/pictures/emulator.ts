import { text } from 'node:stream/consumers'
import type { Page } from 'playwright-core'
import { createClient } from '../../src/service/client/index.ts'
import { createEmulator } from '../../src/service/emulator/index.ts'
import { listen } from '../../test/support/listen.ts'
import type { Shown } from './shown.ts'

/** The emulator with two webhooks, one of which answers 503 to the first delivery of each event. */
export async function showEmulator(): Promise<Shown> {
  const seen = new Set<string>()
  const receiver = await listen(async (request, response) => {
    const body = await text(request)
    const isRefused = request.url === '/staging' && !seen.has(body)
    if (isRefused) seen.add(body)
    response.writeHead(isRefused ? 503 : 200).end()
  })
  const emulator = await createEmulator({ timeScale: 0.02 })
  const client = createClient(emulator.credentials, { baseUrl: emulator.url })
  const every = { encodingFinished: true, encodingFailed: true, partialFinished: true }
  const all = { ...every, fileReceived: true, encodingStarted: true }
  await client.webhook.create({ ...all, name: 'Production', url: `${receiver.origin}/webhooks/media?token=3f9c` })
  const { data } = await client.webhook.create({ ...every, name: 'Staging, flaky', url: `${receiver.origin}/staging` })
  emulator.behave(data.webhook.id, {
    sign: { scheme: 'hmac-signature', secret: 'the secret of the pictures', header: 'X-Signature' },
  })
  for (const title of ['Graphs & Trees.mp4', 'Interview.mp4']) {
    emulator.addMedia({ title, qualities: ['360p', '720p'] })
    await emulator.settled()
  }
  return {
    url: emulator.url,
    async prepare(page: Page) {
      const sent = page.locator('tr.sending').filter({ hasText: 'encoding.finished' }).filter({ hasText: 'Staging' })
      await sent.first().getByRole('link').click()
      await page.getByText('answered 503').first().waitFor()
    },
    async close() {
      await emulator.close()
      await receiver.close()
    },
  }
}
