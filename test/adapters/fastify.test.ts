import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { PassThrough } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import rawBody from 'fastify-raw-body'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { fastifyReceiver } from '../../adapters/fastify.ts'
import { urlToken } from '../../src/index.ts'
import { makeDelivery } from '../../src/testing/index.ts'
import { fastify4 } from '../support/mounts.ts'
import { untyped } from '../support/untyped.ts'
import { path, signed } from './express-app.ts'
import { bytes, forgery, freshBody, url, watchedReceiver } from './receivers.ts'

type Options = Parameters<typeof watchedReceiver>[0]
type Create = (options?: FastifyServerOptions) => FastifyInstance

const fastify5: Create = (options) => fastify({ return503OnClosing: false, ...options })
const accepted = { status: 'accepted' }

/** Closes an application with the test. */
function closedWithTest<App extends Pick<FastifyInstance, 'close'>>(app: App): App {
  onTestFinished(() => app.close())
  return app
}

/** Makes an application with a watched receiver, after the given plugins. */
function appWith(
  create: Create,
  options: Options,
  { add = () => {}, ...server }: FastifyServerOptions & { add?: (app: FastifyInstance) => unknown } = {},
) {
  const watched = watchedReceiver(options)
  const app = closedWithTest(create(server))
  add(app)
  app.register(fastifyReceiver, { receiver: watched.receiver, url: path })
  return { ...watched, app }
}

async function inject(app: FastifyInstance, delivery: Awaited<ReturnType<typeof signed>>) {
  const { url, headers, body } = delivery
  const response = await app.inject({ method: 'POST', url, headers, payload: Buffer.from(body) })
  return { status: response.statusCode, headers: response.headers, body: response.json() }
}

describe.each<[string, Create]>([
  ['Fastify 5', fastify5],
  ['Fastify 4', (options) => fastify4({ return503OnClosing: false, ...options }) as FastifyInstance],
])('%s', (_, create) => {
  test('accepts an injected delivery, knows its duplicate and rejects a forged one', async () => {
    const { app, handled } = appWith(create, bytes)
    const delivery = await signed(bytes)
    expect(await inject(app, delivery)).toMatchObject({ status: 200, body: accepted })
    expect(await inject(app, delivery)).toMatchObject({ status: 200, body: { status: 'duplicate' } })
    expect(await inject(app, await signed(forgery))).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
    await expect.poll(() => handled.length).toBe(1)
  })

  test('answers an injected delivery that is too large', async () => {
    const { app } = appWith(create, { ...bytes, maxBodyBytes: 10 })
    expect(await inject(app, await signed(bytes))).toMatchObject({ status: 413, body: { code: 'too_large' } })
  })

  test('leaves the parsers and the limit of the application as they are, and reads past them', async () => {
    const { app, handled } = appWith(create, bytes, { bodyLimit: 20 })
    app.post('/echo', async ({ body }) => body)
    const echo = (payload: object) => app.inject({ method: 'POST', url: '/echo', payload })
    expect((await echo({ a: 1 })).json()).toEqual({ a: 1 })
    expect((await echo({ a: 'more than twenty bytes' })).statusCode).toBe(413)
    expect(
      (await app.inject({ method: 'POST', url: '/echo', payload: 'a', headers: { 'content-type': 'a/b' } })).statusCode,
    ).toBe(415)
    expect((await inject(app, await signed(bytes))).status).toBe(200)
    await expect.poll(() => handled.length).toBe(1)
  })

  test('answers every method on its path, and nothing on others', async () => {
    const { app } = appWith(create, bytes)
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'] as const) {
      const { statusCode, headers } = await app.inject({ method, url: path })
      expect([statusCode, headers['allow']]).toEqual([405, 'POST'])
    }
    expect((await app.inject({ method: 'POST', url: '/' })).statusCode).toBe(404)
  })

  test('under a prefix, shows the verifier the whole URL', async () => {
    const token = { secret: 'media', in: 'path' } as const
    const { receiver } = watchedReceiver({ verify: urlToken(token) })
    const app = closedWithTest(create())
    app.register(fastifyReceiver, { prefix: '/webhooks', receiver, url: '/media' })
    expect((await inject(app, await signed(forgery))).status).toBe(200)
    expect((await app.inject({ method: 'POST', url: '/media' })).statusCode).toBe(404)
  })

  test('serves two receivers', async () => {
    const { app, handled } = appWith(create, bytes)
    const other = watchedReceiver(url)
    app.register(fastifyReceiver, { receiver: other.receiver, url: '/other' })
    expect((await inject(app, await signed(bytes))).status).toBe(200)
    const { url: target, ...delivery } = await signed(url)
    expect((await inject(app, { ...delivery, url: target.replace(path, '/other') })).status).toBe(200)
    await expect.poll(() => [handled.length, other.handled.length]).toEqual([1, 1])
  })

  test('answers through the hooks of the application', async () => {
    const { app } = appWith(create, bytes, {
      add: (app) => app.addHook('onSend', async (_, reply) => void reply.header('x-served-by', 'us')),
    })
    expect((await inject(app, await signed(bytes))).headers).toMatchObject({ 'x-served-by': 'us' })
  })

  test('answers nothing after a hook that has already answered', async () => {
    const { app, handled } = appWith(create, bytes, {
      add: (app) => app.addHook('preHandler', async (_, reply) => reply.code(418).send({})),
    })
    expect((await inject(app, await signed(bytes))).status).toBe(418)
    expect(handled).toHaveLength(0)
  })

  test('answers 500 behind a hook that replaces the body, and logs the fix', async () => {
    const { app, lines, handled } = appWith(create, bytes, {
      add: (app) => app.addHook('preParsing', async (_, __, payload) => payload.pipe(new PassThrough())),
    })
    expect(await inject(app, await signed(bytes))).toMatchObject({ status: 500, body: { code: 'body_consumed' } })
    expect(lines).toMatchObject([{ level: 'error', message: expect.stringMatching(/in Fastify, .+request\.rawBody/) }])
    expect(handled).toHaveLength(0)
  })

  test.each([
    ['receiver', { url: path }, 'give it a receiver'],
    ['option', { receiver: watchedReceiver(bytes).receiver, url: path, path }, 'there is no option path'],
    ['url', { receiver: watchedReceiver(bytes).receiver }, 'url must be the path of the webhook'],
    ['closeTimeoutMs', { receiver: watchedReceiver(bytes).receiver, url: path, closeTimeoutMs: -1 }, '0 or more'],
  ])('is not registered with a wrong %s', async (_, options, message) => {
    const app = closedWithTest(create())
    app.register(fastifyReceiver, untyped(options))
    // Asked again, an old Fastify 4 resolves.
    const error = await app.ready().then(null, (error: unknown) => error)
    expect(error).toMatchObject({ code: 'invalid_option', message: expect.stringContaining(`fastifyReceiver: `) })
    expect(error).toHaveProperty('message', expect.stringContaining(message))
  })

  test('says at the start that Fastify would reject deliveries while it closes, and how to avoid it', async () => {
    const rejecting = appWith(create, bytes, { return503OnClosing: true })
    await rejecting.app.ready()
    expect(rejecting.lines).toMatchObject([
      { level: 'warn', message: expect.stringContaining('return503OnClosing: false') },
    ])
    const accepting = appWith(create, bytes)
    await accepting.app.ready()
    expect(accepting.lines).toEqual([])
  })

  test('has a name', async () => {
    const { app } = appWith(create, bytes)
    await app.ready()
    expect(app.printPlugins()).toContain('media-webhooks')
  })
})

test('a delivery is verified behind fastify-raw-body, which reads the bodies of every route', async () => {
  const { app, handled } = appWith(fastify5, bytes, { add: (app) => app.register(rawBody) })
  // Fastify runs the plugin before the routes that follow it only if they wait for it.
  await app.after()
  expect((await inject(app, await signed(bytes))).status).toBe(200)
  expect((await inject(app, await signed(forgery))).status).toBe(401)
  await expect.poll(() => handled.length).toBe(1)
})

test('a delivery over HTTP/2 is accepted', async () => {
  const { receiver, handled } = watchedReceiver(bytes)
  const app = closedWithTest(fastify({ http2: true }))
  app.register(fastifyReceiver, { receiver, url: path })
  const session = connectHttp2(await app.listen({ port: 0, host: '127.0.0.1' }))
  onTestFinished(() => session.destroy())
  const { headers, body } = await signed(bytes)
  const stream = session.request({ ...headers, ':method': 'POST', ':path': path })
  stream.end(body)
  const [fields] = await once(stream, 'response')
  stream.resume()
  expect(fields[':status']).toBe(200)
  await expect.poll(() => handled.length).toBe(1)
})

describe('when the server closes', () => {
  /** Opens a connection that is kept alive. */
  async function connection(app: FastifyInstance) {
    await app.listen({ port: 0, host: '127.0.0.1' })
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    return socket
  }

  const headOf = ({ url, headers, body }: Awaited<ReturnType<typeof signed>>) => {
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    return `POST ${url} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.byteLength}\r\n${fields.join('')}\r\n`
  }

  test('a delivery that is half sent is accepted and handled, and its connection does not hold up the end', async () => {
    const { app, handled, reports } = appWith(fastify5, bytes)
    const begun = new Promise<void>((resolve) => {
      app.addHook('onRequest', async () => resolve())
    })
    const socket = await connection(app)
    const delivery = await signed(bytes, { body: freshBody() })
    socket.write(headOf(delivery))
    await begun
    const closed = app.close()
    await expect.poll(() => app.server.listening).toBe(false)
    socket.write(delivery.body)
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /)
    await closed
    expect([reports.map(({ outcome }) => outcome), handled.length]).toEqual([['accepted'], 1])
  })

  test('a delivery that arrives meanwhile is accepted, and told that its connection ends', async () => {
    const { app, handled } = appWith(fastify5, bytes)
    const socket = await connection(app)
    const deliver = async () => {
      const delivery = await signed(bytes, { body: freshBody() })
      return () => {
        socket.write(Buffer.concat([Buffer.from(headOf(delivery)), delivery.body]))
        return once(socket, 'data')
      }
    }
    const [first, second] = [await deliver(), await deliver()]
    expect(String((await first())[0])).not.toMatch(/connection: close/i)
    const closed = app.close()
    expect(String((await second())[0])).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close/i)
    await closed
    expect(handled).toHaveLength(2)
  })

  test('it waits for handlers, for as long as it is told', async () => {
    let finish = () => {}
    const slow = new Promise<void>((resolve) => {
      finish = resolve
    })
    const { app, receiver } = appWith(fastify5, { ...bytes, handlers: { 'encoding.finished': () => slow } })
    await inject(app, await signed(bytes))
    await expect.poll(() => receiver.inbox.stats()).toMatchObject({ running: 1 })
    let isClosed = false
    const closing = app.close().then(() => {
      isClosed = true
    })
    const delivery = await makeDelivery(freshBody())
    await expect.poll(async () => (await receiver.receive(delivery)).outcome).toBe('closing')
    expect(isClosed).toBe(false)
    finish()
    await closing
    expect(await receiver.close()).toEqual({ unfinished: [] })
  })

  test('it aborts handlers after closeTimeoutMs', async () => {
    const { receiver } = watchedReceiver({ ...bytes, handlers: { 'encoding.finished': () => new Promise(() => {}) } })
    const close = vi.fn(receiver.close)
    const app = closedWithTest(fastify())
    app.register(fastifyReceiver, { receiver: { receive: receiver.receive, close }, url: path, closeTimeoutMs: 1 })
    await inject(app, await signed(bytes))
    await app.close()
    expect(close).toHaveBeenCalledExactlyOnceWith({ timeoutMs: 1 })
    expect((await receiver.close()).unfinished).toHaveLength(1)
  })

  test('it leaves no timer, which would keep the process alive', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { app } = appWith(fastify5, bytes)
    await app.listen({ port: 0, host: '127.0.0.1' })
    await app.close()
    expect(vi.getTimerCount()).toBe(0)
  })
})
