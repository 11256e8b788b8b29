import { createHash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { createReceiver, urlToken } from '../../src/index.ts'
import { deliver, samplePayload, signWithUrlToken } from '../../src/testing/index.ts'
import { testPublicKeys } from './public-key-signature.suite.ts'
import { testSchemes } from './schemes.suite.ts'
import { testSns } from './sns-signature.suite.ts'

// The implementation that runtimes without node:crypto load.
vi.mock('#crypto', () => import('../../src/internal/crypto/web.ts'))

testSchemes('with WebCrypto')
testPublicKeys('with WebCrypto')
testSns('with WebCrypto')

test('with WebCrypto, long event keys get the same hash as with node:crypto', async () => {
  const keys: string[] = []
  const receiver = createReceiver({
    verify: urlToken({ secret: 'a token' }),
    handlers: { 'encoding.finished': ({ key }) => void keys.push(key) },
  })
  const sign = signWithUrlToken({ secret: 'a token' })
  const long = samplePayload('encoding.finished', { user_id: 'u'.repeat(300) })
  for (const payload of [long, samplePayload('encoding.finished', { emitted_at: '' })]) {
    await (await deliver(receiver, payload, { sign })).handled
  }
  expect((await deliver(receiver, long, { sign })).outcome).toBe('duplicate')
  const { type, media_id, user_id, emitted_at, qualities, status } = long
  const text = JSON.stringify([type, media_id, user_id, emitted_at, qualities, status])
  const hash = createHash('sha256').update(JSON.stringify(text)).digest('hex')
  expect(keys[0]).toBe(`sha256:${hash}`)
  expect(keys[1]).toMatch(/^sha256:[0-9a-f]{64}$/)
})
