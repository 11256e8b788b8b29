import { expect, test } from 'vitest'
import { startServer } from '../../demo/server.ts'
import { createReceiver, unverified } from '../../src/index.ts'
import { reachableAt } from '../support/reachable-at.ts'

test('The server of the demo listens on 127.0.0.1 only', async () => {
  const receiver = createReceiver({ verify: unverified() })
  const server = await startServer(receiver, 0, () => {})
  try {
    expect(await reachableAt(server.url.href)).toEqual(['127.0.0.1'])
  } finally {
    await server.close()
    await receiver.close()
  }
})
