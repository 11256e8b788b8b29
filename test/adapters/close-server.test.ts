import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { closeServer, nodeHandler } from '../../adapters/node.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import {
  type CloseReport,
  createReceiver,
  type InboxDefinition,
  memoryInbox,
  type Receiver,
  RetryAfter,
  unverified,
} from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { ownTime } from '../support/own-time.ts'
import { silent } from '../support/silent.ts'

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
  const separately = (server: Server, receiver: Receiver) => {
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
    const cut = once(socket, 'close')
    expect(await closeServer(server, receiver, { timeoutMs: 200 })).toEqual({ unfinished: [] })
    expect(elapsed()).toBeLessThan(2_000)
    await cut
  })
})

describe('an answer while the server closes', () => {
  const whole = (id: number) => Buffer.concat([Buffer.from(head(body(id))), body(id)])

  test('ends each of thirty connections, so that no sender is cut off', async () => {
    const { server, receiver, open } = await opened(memoryInbox())
    const sockets = await Promise.all(Array.from({ length: 30 }, open))
    let sent = 0
    const send = (socket: Socket) => {
      socket.write(whole(sent++))
      return answer(socket).catch(() => 'cut off')
    }
    for (const socket of sockets) expect(await send(socket)).toMatch(/connection: keep-alive/i)
    const ends = sockets.map(async (socket) => {
      for (;;) {
        const answered = await send(socket)
        if (!/connection: keep-alive/i.test(answered)) return answered.slice(0, 12)
      }
    })
    await expect.poll(() => sent).toBeGreaterThan(100)
    await closeServer(server, receiver)
    expect(new Set(await Promise.all(ends))).toEqual(new Set(['HTTP/1.1 200']))
  })

  test('of a receiver that is closed alone ends the connection too', async () => {
    const { receiver, open } = await opened(memoryInbox())
    const socket = await open()
    await receiver.close()
    socket.write(whole(1))
    expect(await answer(socket)).toMatch(/^HTTP\/1.1 503 [\s\S]*connection: close/i)
    await once(socket, 'end')
  })

  test('reaches its sender, although the body was not read', async () => {
    const { server, receiver, open } = await opened(memoryInbox())
    const socket = await open()
    const closed = closeServer(server, receiver)
    socket.write('PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n')
    expect(await answer(socket)).toMatch(/^HTTP\/1.1 405 [\s\S]*connection: close/i)
    socket.write(Buffer.alloc(60_000))
    await once(socket, 'end')
    await closed
  })
})

test('a connection that has never sent a byte does not hold up the end', async () => {
  const { server, receiver, open } = await opened(memoryInbox())
  const silentClosed = once(await open(), 'close')
  await expect.poll(() => promisify(server.getConnections.bind(server))()).toBe(1)
  expect(await closeServer(server, receiver, { timeoutMs: Number.POSITIVE_INFINITY })).toEqual({ unfinished: [] })
  await silentClosed
})

/** From version 26 on, `server.close` itself closes a connection whose first byte has not arrived. The sender tries again. */
const closesUnused = Number.parseInt(process.versions.node, 10) >= 26

test.skipIf(closesUnused)('a connection that is about to send is answered, unless Node closes it', async () => {
  const { server, receiver, handled, open } = await opened(memoryInbox())
  const [silent, late] = [await open(), await open()]
  await expect.poll(() => promisify(server.getConnections.bind(server))()).toBe(2)
  const silentClosed = once(silent, 'close')
  const closed = closeServer(server, receiver, { timeoutMs: Number.POSITIVE_INFINITY })
  const content = body(1)
  late.write(head(content))
  await silentClosed
  late.write(content)
  expect(await answer(late)).toMatch(/^HTTP\/1.1 200/)
  expect(await closed).toEqual({ unfinished: [] })
  expect(handled).toEqual(['m1'])
})

test('a connection that never begins its TLS handshake does not hold up the end', async () => {
  const receiver = createReceiver({ verify: unverified(), logger: silent })
  const server = createHttpsServer(nodeHandler(receiver)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await expect.poll(() => promisify(server.getConnections.bind(server))()).toBe(1)
  expect(await closeServer(server, receiver, { timeoutMs: Number.POSITIVE_INFINITY })).toEqual({ unfinished: [] })
})

describe('the time limit', () => {
  const fakeTimers = () =>
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })

  /** Advances the time, and lets the server begin to close once senders had theirs. */
  const advance = async (ms: number, lingerMs: number) => {
    await vi.advanceTimersByTimeAsync(lingerMs)
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    await vi.advanceTimersByTimeAsync(ms - lingerMs)
  }

  const late = (ended: () => void) => {
    vi.advanceTimersByTime(300)
    ended()
  }

  afterEach(() => {
    vi.useRealTimers()
  })

  test.each<[string, Parameters<typeof closeServer>[0], number, object]>([
    ['half for requests that never end', { close() {} }, 100, { waitedMs: 100, timeoutMs: 100 }],
    [
      'less for those that end sooner',
      { close: (ended) => setTimeout(ended, 30) },
      80,
      { waitedMs: 80, timeoutMs: 120 },
    ],
    ['nothing for handlers if it is over', { close: late }, 50, { waitedMs: 350, timeoutMs: 0 }],
  ])('is divided: %s', async (_, server, advanceMs, expected) => {
    fakeTimers()
    const startedAt = performance.now()
    const calls: object[] = []
    const close = async (options?: object) => {
      calls.push({ waitedMs: performance.now() - startedAt, ...options })
      return { unfinished: [] }
    }
    const closed = closeServer(server, { close }, { timeoutMs: 200 })
    await advance(advanceMs, 50)
    await closed
    expect(calls).toEqual([expected])
    // One that is left would keep the process alive.
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([Number.POSITIVE_INFINITY, 2 ** 40])('can be longer than a timer waits: %d ms', async (timeoutMs) => {
    fakeTimers()
    const calls: object[] = []
    const close = async (options?: object) => {
      calls.push({ ...options })
      return { unfinished: [] }
    }
    const closed = closeServer({ close: (ended) => setTimeout(ended, 60_000) }, { close }, { timeoutMs })
    await advance(60_000, 100)
    expect(calls).toEqual([])
    await vi.advanceTimersByTimeAsync(100)
    await closed
    expect(calls).toEqual([{ timeoutMs: timeoutMs - 60_100 }])
  })
})

test('the connections that are left are closed after the receiver, even if it fails to close', async () => {
  const order: string[] = []
  const server = {
    close: (callback: () => void) => callback(),
    closeAllConnections: () => void order.push('connections'),
  }
  const close = async () => {
    await new Promise(setImmediate)
    order.push('receiver')
    throw new Error('no')
  }
  await expect(closeServer(server, { close })).rejects.toThrow('no')
  expect(order).toEqual(['receiver', 'connections'])
})

test.each([
  ['no server', undefined, { close: async () => ({ unfinished: [] }) }],
  ['no receiver', { close: (ended: () => void) => ended() }, undefined],
])('closeServer says what it takes when it is given %s', async (_, server, receiver) => {
  await expect(closeServer(server as never, receiver as never)).rejects.toMatchObject({
    code: 'invalid_option',
    message: 'closeServer: pass a server and its receiver: closeServer(server, receiver)',
  })
})

test.each<[string, unknown]>([
  ['a limit that is no number', { timeoutMs: Number.NaN }],
  ['a negative limit', { timeoutMs: -1 }],
  ['a limit as text', { timeoutMs: '5' }],
  ['an unknown option', { timeout: 5 }],
  ['no options', null],
])('closeServer given %s closes all, and then rejects', async (_, options) => {
  const { server, receiver, open } = await opened(memoryInbox())
  const socket = await open()
  socket.write(Buffer.concat([Buffer.from(head(body(1))), body(1)]))
  await answer(socket)
  const ended = once(socket, 'end')
  await expect(closeServer(server, receiver, options as never)).rejects.toMatchObject({
    code: 'invalid_option',
    message: expect.stringMatching(/^closeServer: /),
  })
  await ended
  expect(server.listening).toBe(false)
  expect(() => receiver.inbox.accept({ event: {} } as never)).toThrow(/closing/)
})

describe('a request that never ends, while events wait for a retry', () => {
  const closes: [string, (server: Server, receiver: Receiver, timeoutMs: number) => Promise<CloseReport>][] = [
    ['closeServer', (server, receiver, timeoutMs) => closeServer(server, receiver, { timeoutMs })],
    ['receiver.close()', (_, receiver, timeoutMs) => receiver.close({ timeoutMs })],
  ]

  test.each(closes)('costs none of them when %s closes the server', async (_name, close) => {
    const { server, receiver, open } = await opened(memoryInbox())
    const retried: string[] = []
    receiver.onAny(async ({ mediaId }, { attempt }) => {
      if (attempt === 1) throw new RetryAfter('1 h')
      await new Promise((resolve) => setTimeout(resolve, 50))
      retried.push(mediaId)
    })
    const ids = Array.from({ length: 10 }, (_, id) => id)
    for (const id of ids) {
      const socket = await open()
      socket.write(Buffer.concat([Buffer.from(head(body(id))), body(id)]))
      expect(await answer(socket)).toMatch(/^HTTP\/1.1 200/)
      socket.destroy()
    }
    await vi.waitUntil(async () => (await receiver.inbox.stats()).retrying === 10)
    const slow = await open()
    slow.write(`${head(body(11))}{`)
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(await close(server, receiver, 1_000)).toEqual({ unfinished: [] })
    expect(retried.toSorted()).toEqual(ids.map((id) => `m${id}`))
  })
})
