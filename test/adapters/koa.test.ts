import { createRequire } from 'node:module'
import Router from '@koa/router'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { koaHandler } from '../../adapters/koa.ts'
import { koa2 } from '../support/mounts.ts'
import { path, post, signed } from './express-app.ts'
import { bytes, forgery, url, watchedReceiver, withMark } from './receivers.ts'

const require = createRequire(import.meta.url)
// Its types would add properties to the IncomingMessage of the whole project.
const { bodyParser } = require('@koa/bodyparser')
const accepted = { status: 'accepted' }

/** Makes an application with a watched receiver behind the given middleware. */
function appBehind(
  create: typeof Koa,
  options: Parameters<typeof watchedReceiver>[0],
  ...middleware: readonly Koa.Middleware[]
) {
  const watched = watchedReceiver(options)
  const app = new create()
  for (const each of middleware) app.use(each)
  app.use(koaHandler(watched.receiver))
  return { ...watched, app: app.callback() }
}

/** A parser that keeps no bytes. */
const parse: Koa.Middleware = async ({ req, request }, next) => {
  const pieces: Buffer[] = []
  for await (const piece of req) pieces.push(piece)
  Object.assign(request, { body: JSON.parse(String(Buffer.concat(pieces))) })
  await next()
}

describe.each([
  ['Koa 3', Koa],
  ['Koa 2', koa2],
])('%s', (_, create) => {
  test('on a route, leaves other methods and paths to the application', async () => {
    const { receiver, handled } = watchedReceiver(bytes)
    const router = new Router({ prefix: '/webhooks' }).post('/media', koaHandler(receiver))
    const app = new create().use(router.routes()).callback()
    await post(app, await signed(bytes)).expect(200, accepted)
    await request(app).get(path).expect(404)
    await expect.poll(() => handled.length).toBe(1)
  })

  test('by use, answers every request', async () => {
    const { app } = appBehind(create, bytes)
    await post(app, { ...(await signed(bytes)), url: '/' }).expect(200, accepted)
    await request(app).get('/').expect(405).expect('allow', 'POST')
  })

  test('answers through the middleware before it', async () => {
    const { app } = appBehind(create, bytes, async (context, next) => {
      await next()
      context.set('x-status', String(context.status))
    })
    await post(app, await signed(bytes))
      .expect(200, accepted)
      .expect('x-status', '200')
    await post(app, await signed(forgery))
      .expect(401)
      .expect('x-status', '401')
  })

  test('before a parser, sees the bytes, and leaves bodies of other routes to it', async () => {
    const { receiver, handled } = watchedReceiver(bytes)
    const app = new create()
    app.use(new Router().post(path, koaHandler(receiver)).routes()).use(parse)
    app.use((context) => {
      context.body = (context.request as { body?: unknown }).body
    })
    await post(app.callback(), await signed(bytes)).expect(200, accepted)
    await request(app.callback()).post('/echo').send({ a: 1 }).expect(200, { a: 1 })
    await expect.poll(() => handled.length).toBe(1)
  })

  test('takes the bytes that @koa/bodyparser has kept', async () => {
    const { app, handled } = appBehind(create, bytes, bodyParser())
    await post(app, await signed(bytes)).expect(200, accepted)
    await post(app, await signed(forgery)).expect(401)
    await expect.poll(() => handled.length).toBe(1)
  })

  test('takes the bytes that begin with a byte order mark, which @koa/bodyparser drops', async () => {
    const { app, handled } = appBehind(create, bytes, bodyParser())
    await post(app, await signed(bytes, { body: withMark() })).expect(200, accepted)
    await expect.poll(() => handled.length).toBe(1)
  })

  test('behind a parser that keeps no bytes, works with a verifier that needs none', async () => {
    const { app, handled } = appBehind(create, url, parse)
    await post(app, await signed(url)).expect(200, accepted)
    await post(app, await signed(forgery)).expect(401)
    await expect.poll(() => handled.length).toBe(1)
  })

  test('behind a parser that keeps no bytes, answers 500 with a verifier that needs them, and logs the fix', async () => {
    const { app, lines, handled } = appBehind(create, bytes, parse)
    await post(app, await signed(bytes)).expect(500, /"code":"body_consumed"/)
    const message = expect.stringMatching(/hmacSignature needs the exact bytes: in Koa, .+before the body parser/)
    expect(lines).toMatchObject([{ level: 'error', message }])
    expect(handled).toHaveLength(0)
  })
})
