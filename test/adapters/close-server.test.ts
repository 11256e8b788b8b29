import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { closeServer, nodeHandler } from '../../adapters/node.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, type InboxDefinition, memoryInbox, unverified } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../conformance/subject.ts'
import { freshPath } from '../inbox/sqlite/fixture.ts'
import { ownTime } from '../own-time.ts'

const body = (id: number) => Buffer.from(encodePayload(samplePayload('encoding.finished', { media_id: `m${id}` })))
const head = (content: Buffer) =>
  `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${content.byteLength}\r\n\r\n`

/** Opens a server with a receiver, and counts what it handles. */
async function opened(inbox: InboxDefinition) {
  const handled: string[] = []
  const receiver = createReceiver({ verify: unverified(), inbox, logger: silent })
  receiver.onAny(({ mediaId }) => void handled.push(mediaId))
  const server = createServer(nodeHandler(receiver)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets: Socket[] = []
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await receiver.close({ timeoutMs: 0 })
  })
  const open = async () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }
  return { server, receiver, handled, open }
}

/** Waits for the next answer. */
const answer = async (socket: Socket) => String((await once(socket, 'data'))[0])

const inboxes: [string, () => Promise<InboxDefinition>][] = [
  ['a memory inbox', async () => memoryInbox()],
  ['a SQLite inbox', async () => sqliteInbox({ path: await freshPath() })],
]

describe.each(inboxes)('a server with %s', (_, makeInbox) => {
  const separately: typeof closeServer = (server, receiver) => {
    server.close(() => {})
    return receiver.close()
  }

  test.each([
    ['closeServer', closeServer],
    ['server.close() and receiver.close()', separately],
  ])('accepts a delivery that is half sent when it is closed by %s', async (_name, close) => {
    const { server, receiver, handled, open } = await opened(await makeInbox())
    const socket = await open()
    const content = body(1)
    socket.write(head(content))
    socket.write(content.subarray(0, 20))
    await new Promise((resolve) => setTimeout(resolve, 30))
    const closed = close(server, receiver)
    await new Promise((resolve) => setTimeout(resolve, 30))
    socket.write(content.subarray(20))
    expect(await answer(socket)).toMatch(/^HTTP\/1.1 200/)
    const { unfinished } = await closed
    // A durable inbox keeps the events that it has not started in its file.
    expect([...handled, ...unfinished.map(({ event }) => event.mediaId)]).toEqual(['m1'])
  })

  test('closes connections that are kept alive, between two deliveries and not within one', async () => {
    const { server, receiver, handled, open } = await opened(await makeInbox())
    const [idle, busy] = [await open(), await open()]
    for (const [index, socket] of [idle, busy].entries()) {
      const content = body(index)
      socket.write(Buffer.concat([Buffer.from(head(content)), content]))
      expect(await answer(socket)).toMatch(/^HTTP\/1.1 200/)
    }
    const content = body(2)
    busy.write(head(content))
    await new Promise((resolve) => setTimeout(resolve, 30))
    const [idleClosed, busyClosed] = [once(idle, 'close'), once(busy, 'close')]
    const closed = closeServer(server, receiver)
    await idleClosed
    busy.write(content)
    expect(await answer(busy)).toMatch(/^HTTP\/1.1 200/)
    const { unfinished } = await closed
    await busyClosed
    const safe = [...handled, ...unfinished.map(({ event }) => event.mediaId)]
    expect(safe.toSorted()).toEqual(['m0', 'm1', 'm2'])
  })

  test('is closed in time although a body never ends', async () => {
    const { server, receiver, open } = await opened(await makeInbox())
    const socket = await open()
    socket.write(head(body(1)))
    await new Promise((resolve) => setTimeout(resolve, 30))
    const elapsed = ownTime()
    expect(await closeServer(server, receiver, { timeoutMs: 200 })).toEqual({ unfinished: [] })
    expect(elapsed()).toBeLessThan(2_000)
  })
})
