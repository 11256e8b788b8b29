import { expect, onTestFinished, test, vi } from 'vitest'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'

const delivery = {
  method: 'POST',
  url: '/',
  headers: new Headers(),
  body: encodePayload(samplePayload('encoding.finished')),
}

test.each([
  [
    'throws, as in the Edge Runtime',
    () => {
      throw new Error('A Node.js API is used (setImmediate) which is not supported in the Edge Runtime.')
    },
  ],
  ['is missing', undefined],
])('handles what it accepts where setImmediate %s', async (_, setImmediate) => {
  vi.stubGlobal('setImmediate', setImmediate)
  vi.resetModules()
  onTestFinished(() => {
    vi.unstubAllGlobals()
    vi.resetModules()
  })
  const { createReceiver, unverified } = await import('../../src/index.ts')
  const receiver = createReceiver({ verify: unverified(), logger: silent })
  const handled = vi.fn()
  receiver.onAny(({ mediaId }) => handled(mediaId))
  expect((await receiver.receive(delivery)).outcome).toBe('accepted')
  await vi.waitUntil(() => handled.mock.calls.length === 1, { timeout: 5_000 })
})
