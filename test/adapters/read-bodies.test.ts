import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { bytes, forgery, freshBody, signedRequest, url, watchedReceiver } from './receivers.ts'

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

/** Opens a connection to an adapter, and sends deliveries over it. */
async function opened(name: AdapterName, signer: typeof bytes | typeof url) {
  const mounted = await mounts[name](watchedReceiver(signer).receiver)
  onTestFinished(mounted.close)
  const socket = connect(Number(new URL(mounted.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.setNoDelay()
  const send = async (content: Uint8Array, sign: typeof bytes.sign, firstBytes: number) => {
    const { init } = await signedRequest(mounted.url, { sign }, content)
    const fields = [...init.headers].map(([field, value]) => `${field}: ${value}\r\n`).join('')
    const head = `POST /webhooks/media HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: ${content.byteLength}\r\n\r\n`
    const answered = once(socket, 'data')
    socket.write(Buffer.concat([Buffer.from(head), content.subarray(0, firstBytes)]))
    await new Promise(setImmediate)
    if (firstBytes < content.byteLength) socket.write(content.subarray(firstBytes))
    return String((await answered)[0])
  }
  return { send }
}

const forged: typeof bytes.sign = async (draft) => ({ ...draft, headers: { 'x-signature': '00' } }) as never
const names = ['node', 'express5', 'express4', 'fastify5', 'fastify4', 'koa3', 'koa2', 'hono-node', 'fetch'] as const

describe.each(names)('%s, once it has answered a delivery that has arrived', (name) => {
  test.each([
    ['is accepted', freshBody, bytes, bytes.sign, '200'],
    ['has the wrong signature', freshBody, bytes, forged, '401'],
    ['is malformed', () => Buffer.from('{"type":"encoding.finished"}'), bytes, bytes.sign, '400'],
    ['is rejected unread', freshBody, url, forgery.sign, '401'],
  ])('keeps no timer for one that %s', async (_, content, signer, sign, status) => {
    const { send } = await opened(name, signer)
    for (const firstBytes of [10, Number.POSITIVE_INFINITY]) {
      expect(await send(content(), sign, firstBytes)).toMatch(new RegExp(`^HTTP/1.1 ${status}`))
      const before = timers()
      for (let sent = 0; sent < 20; sent++) await send(content(), sign, firstBytes)
      // A few are of the server, and the runner's.
      expect(timers() - before).toBeLessThan(5)
    }
  })
})
