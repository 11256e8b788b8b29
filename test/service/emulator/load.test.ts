import { expect, test } from 'vitest'
import { computingTime } from '../../support/own-time.ts'
import { serveWebhook } from '../../support/serve.ts'
import { answering, api, emulate, subscribe } from './started-emulator.ts'

test('thousands of unfinished events do not slow the API, and all of them arrive', async () => {
  const emulator = await emulate({ timeScale: 0, maxRecords: 5_000 })
  await subscribe(emulator, await serveWebhook(answering(200)))
  for (let count = 0; count < 500; count++) emulator.addMedia({ qualities: ['360p', '480p', '720p'] })

  let slowestMs = 0
  for (let count = 0; count < 50; count++) {
    const computed = computingTime()
    expect((await api(emulator, 'GET', '/webhooks')).status).toBe(200)
    slowestMs = Math.max(slowestMs, computed())
  }
  expect(emulator.sendings().some(({ state }) => state === 'waiting')).toBe(true)
  // About 20 ms on an idle machine.
  expect(slowestMs).toBeLessThan(1_000)

  await emulator.settled({ timeoutMs: 150_000 })
  const states = emulator.sendings().map(({ state }) => state)
  expect(states).toHaveLength(3_000)
  expect(new Set(states)).toEqual(new Set(['acknowledged']))
})
