import { getRequestListener } from '@hono/node-server'
import bodyParser from '@koa/bodyparser'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { consoleLogger } from '../../../src/internal/logger.ts'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { express4, fastify4 } from '../../support/mounts.ts'
import { serve } from '../../support/serve.ts'
import { silent } from '../../support/silent.ts'
import { failing, post, receiverWith, send, untilDead } from './failing-receiver.ts'

const authorize = () => true

type Mount = (page: Dashboard) => Promise<string>

const inExpress =
  (create: typeof express, ...before: ('urlencoded' | 'text' | 'raw')[]): Mount =>
  (page) => {
    const app = create()
    for (const parser of before)
      app.use(parser === 'urlencoded' ? create.urlencoded({ extended: true }) : create[parser]({ type: '*/*' }))
    app.use('/inbox', page.node)
    return serve(app)
  }

const inFastify =
  (create: typeof fastify): Mount =>
  async (page) => {
    const app = create()
    for (const url of ['/inbox', '/inbox/*'])
      app.route({
        method: ['GET', 'HEAD', 'POST'],
        url,
        // The hook runs before Fastify reads the body.
        onRequest(request, reply) {
          reply.hijack()
          page.node(request.raw, reply.raw)
        },
        handler() {},
      })
    onTestFinished(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  }

const inKoa =
  (...before: Koa.Middleware[]): Mount =>
  (page) => {
    const app = new Koa()
    for (const middleware of before) app.use(middleware)
    app.use((context, next) => {
      if (!/^\/inbox(\/|$)/.test(context.path)) return next()
      context.respond = false
      return page.node(context.req, context.res)
    })
    return serve(app.callback())
  }

const mounts: Record<string, Mount> = {
  'node:http': (page) => serve(page.node),
  'Express 5': inExpress(express),
  'Express 4': inExpress(express4),
  'Express 5 behind express.urlencoded': inExpress(express, 'urlencoded'),
  'Express 4 behind express.urlencoded': inExpress(express4, 'urlencoded'),
  'Express 5 behind express.text': inExpress(express, 'text'),
  'Express 5 behind express.raw': inExpress(express, 'raw'),
  'Fastify 5': inFastify(fastify),
  'Fastify 4': inFastify(fastify4),
  Koa: inKoa(),
  'Hono on Node': (page) => {
    const app = new Hono()
    app.all('/inbox', (c) => page.fetch(c.req.raw))
    app.all('/inbox/*', (c) => page.fetch(c.req.raw))
    return serve(getRequestListener(app.fetch))
  },
  'a part of a Hono application': (page) => {
    const part = new Hono().all('*', (c) => page.fetch(c.req.raw))
    return serve(getRequestListener(new Hono().route('/inbox', part).fetch))
  },
}

describe.each(Object.entries(mounts))('in %s', (_, mount) => {
  test('the page, its assets and its actions work, and links lead below the path', async () => {
    const { receiver, keys, state } = await failing(30)
    const origin = await mount(dashboard(receiver, { path: '/inbox', authorize }))
    const start = await fetch(`${origin}/inbox`)
    const html = await start.text()
    expect([start.status, start.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const links = Array.from(html.matchAll(/(?:href|src|action|formaction)="(\/[^"]*)"/g), ([, link]) => link ?? '')
    expect(links.length).toBeGreaterThan(10)
    for (const link of links) {
      expect(link).toMatch(/^\/inbox(\/|\?|$)/)
      const status = (await fetch(origin + link.replaceAll('&amp;', '&'), { redirect: 'manual' })).status
      expect([200, 303]).toContain(status)
    }
    expect((await fetch(`${origin}/inbox/`, { method: 'HEAD' })).status).toBe(200)

    // More than 20 fields of one name, which some parsers make an object of.
    state.works = true
    const form = keys.map((key): [string, string] => ['key', key])
    const acted = await post(`${origin}/inbox/replay`, [...form, ['back', 'dead-letters']])
    expect([acted.status, acted.headers.get('location')]).toEqual([
      303,
      expect.stringMatching(/^\/inbox\/dead-letters\?notice=/),
    ])
    await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(0)
    const shown = await (await fetch(origin + acted.headers.get('location'))).text()
    expect(shown).toContain('30 dead letters replayed.')
  })

  test('the default logger writes an action with its user, the events and their number', async () => {
    const lines = vi.spyOn(console, 'warn').mockImplementation(() => {})
    onTestFinished(() => lines.mockRestore())
    const receiver = receiverWith({ logger: consoleLogger, retry: { attempts: 1 } })
    receiver.on('encoding.finished', () => Promise.reject(new Error('no')))
    await send(receiver, 'a-film')
    await untilDead(receiver, 1)
    const origin = await mount(dashboard(receiver, { path: '/inbox', authorize: () => ({ user: 'ana' }) }))
    const form = { scope: 'all', until: String(Date.now()), confirmed: 'yes' }
    expect((await post(`${origin}/inbox/discard`, form)).status).toBe(303)
    expect(lines.mock.calls.map(String)).toEqual([
      expect.stringMatching(/^media-webhooks: discard requested .*"user":"ana".*"selection":{"scope":"all"/),
      expect.stringMatching(/^media-webhooks: discard finished .*"user":"ana".*"state":"done","total":1,"done":1}$/),
    ])
  })

  test('a reader who may only read gets the pages, and 403 for an action', async () => {
    const { receiver, keys, state } = await failing(1)
    const origin = await mount(dashboard(receiver, { path: '/inbox', authorize: () => 'read' }))
    const shown = await fetch(`${origin}/inbox/dead-letters`)
    expect([shown.status, await shown.text()]).toEqual([200, expect.not.stringContaining('method="post"')])
    state.works = true
    const acted = await post(`${origin}/inbox/replay`, { key: keys[0] ?? '' })
    expect([acted.status, await acted.text()]).toEqual([403, expect.stringContaining('read access only')])
    expect((await receiver.inbox.stats()).deadLetters).toBe(1)
  })
})

test.each(Object.entries(mounts).filter(([name]) => name !== 'node:http'))(
  'a path that only begins like that of the page is left to the application (%s)',
  async (_, mount) => {
    const asked: string[] = []
    const authorize = ({ url }: Request) => asked.push(new URL(url).pathname) > 0
    const origin = await mount(dashboard(receiverWith(), { path: '/inbox', authorize }))
    for (const path of ['/inboxes', '/inbox', '/inbox/events']) await fetch(origin + path)
    expect(asked).toEqual(['/inbox', '/inbox/events'])
  },
)

test('a handler of Next.js passes a Request', async () => {
  const page = dashboard(receiverWith(), { path: '/admin/inbox', authorize })
  expect(await (await page.fetch(new Request('http://localhost:3000/admin/inbox'))).text()).toContain('Overview')
})

test.each([
  ['/admin/inbox', '/admin/inbox/events'],
  ['/admin/inbox', '/inbox/events'],
  ['/admin/inbox', '/events'],
  ['/', '/events'],
  ['/inbox/', '/inbox/events'],
])('with the path %s, the address %s shows the events', async (path, address) => {
  const page = dashboard(receiverWith(), { path, authorize })
  const html = await (await page.fetch(new Request(`http://localhost${address}`))).text()
  expect(html).toContain('<title>Events')
  expect(html).toContain(`href="${path.replace(/\/$/, '')}/dead-letters"`)
})

test('a form that another parser has consumed is answered with the fix', async () => {
  const { receiver, keys } = await failing(1)
  const origin = await inKoa(bodyParser())(dashboard(receiver, { path: '/inbox', authorize }))
  const response = await post(`${origin}/inbox/replay`, { key: keys[0] ?? '' })
  expect([response.status, await response.text()]).toEqual([500, expect.stringContaining('before body parsers')])
  const page = dashboard(receiver, { authorize })
  const init = { method: 'POST', body: 'key=1', headers: { origin: 'http://localhost' } }
  const request = new Request('http://localhost/replay', init)
  await request.text()
  const consumed = await page.fetch(request)
  expect([consumed.status, await consumed.text()]).toEqual([500, expect.stringContaining('before body parsers')])
})

test('a form that is too large is rejected', async () => {
  const origin = await serve(dashboard(receiverWith(), { authorize }).node)
  expect((await post(`${origin}/replay`, { key: 'x'.repeat(1_100_000) })).status).toBe(413)
})

test('cookies of an answer of authorize stay apart', async () => {
  const headers = new Headers({ location: '/login' })
  headers.append('set-cookie', 'a=1')
  headers.append('set-cookie', 'b=2')
  const authorize = () => new Response(null, { status: 302, headers })
  const origin = await serve(dashboard(receiverWith(), { authorize }).node)
  const response = await fetch(origin, { redirect: 'manual' })
  expect([response.status, response.headers.getSetCookie()]).toEqual([302, ['a=1', 'b=2']])
})

test('an answer that cannot be sent is logged, and does not end the process', async () => {
  const lines: string[] = []
  const logger = { ...silent, error: (_: object, line: string) => void lines.push(line) }
  const login = new Response('Sign in first', { status: 401 })
  const origin = await serve(dashboard(receiverWith({ logger }), { authorize: () => login }).node)
  expect([(await fetch(origin)).status, lines]).toEqual([401, []])
  expect((await fetch(origin)).status).toBe(500)
  expect(lines).toEqual(['the dashboard could not send its response'])
})
