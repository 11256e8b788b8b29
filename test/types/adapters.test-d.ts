import { createServer } from 'node:http'
import KoaRouter from '@koa/router'
import express from 'express'
import fastify, { type FastifyBaseLogger } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expectTypeOf, test } from 'vitest'
import { expressHandler } from '../../adapters/express.ts'
import { fastifyReceiver } from '../../adapters/fastify.ts'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { koaHandler } from '../../adapters/koa.ts'
import { nodeHandler } from '../../adapters/node.ts'
import type { Receiver } from '../../src/index.ts'

declare const receiver: Receiver
declare const logger: FastifyBaseLogger & { mine: true }
declare const makeReceiver: (secret: string) => Receiver

describe('the handlers of the adapters fit', () => {
  test('Express', () => {
    const app = express()
    const handler = expressHandler(receiver)
    app.post('/webhooks/media', handler)
    app.use('/webhooks/media', handler)
    app.all('/webhooks/media', express.raw({ type: '*/*' }), handler)
    app.route('/webhooks/media').post(handler)
    express.Router().post('/media/:id', handler)
    expectTypeOf(handler).toExtend<express.RequestHandler>()
  })

  test('Fastify, with any server, logger and type provider', () => {
    const options = { receiver, url: '/webhooks/media' }
    fastify().register(fastifyReceiver, options)
    fastify({ http2: true }).register(fastifyReceiver, { ...options, closeTimeoutMs: 1_000 })
    fastify({ https: {} }).register(fastifyReceiver, { ...options, prefix: '/webhooks' })
    fastify({ http2: true, https: {} }).register(fastifyReceiver, options)
    fastify({ loggerInstance: logger }).register(fastifyReceiver, options)
    fastify().register(async (scope) => void scope.register(fastifyReceiver, options))
  })

  test('Koa, with any state and context', () => {
    const handler = koaHandler(receiver)
    new Koa().use(handler)
    new Koa<{ user: string }, { db: object }>().use(handler)
    new KoaRouter().all('/webhooks/media', handler).post('/:id', handler)
    expectTypeOf(handler).toExtend<Koa.Middleware>()
  })

  test('Hono, with any bindings and variables', () => {
    const handler = honoHandler(receiver)
    new Hono().post('/webhooks/media', handler).all('/any', handler)
    new Hono().on(['POST'], '/webhooks/:id', handler)
    new Hono().use('/webhooks/*', handler)
    new Hono<{ Bindings: { SECRET: string }; Variables: { user: string } }>().post('/webhooks/media', handler)
    new Hono().route('/webhooks', new Hono().post('/media', handler))
  })

  test('node:http', () => {
    createServer(nodeHandler(receiver))
    createServer((request, response) => void nodeHandler(receiver)(request, response))
  })

  test('fetch runtimes', () => {
    const handler = fetchHandler(receiver)
    expectTypeOf(handler(new Request('http://localhost'))).toEqualTypeOf<Promise<Response>>()
    const worker: { fetch(request: Request): Response | Promise<Response> } = { fetch: handler }
    expectTypeOf(worker.fetch).toBeFunction()
  })

  test('Workers, whose environment makes the receiver', () => {
    interface Env {
      readonly SECRET: string
    }
    interface Context {
      waitUntil(promise: Promise<unknown>): void
    }
    interface Worker {
      fetch(request: Request, env: Env, context: Context): Promise<Response>
    }
    const fetch = fetchHandler((env: Env) => makeReceiver(env.SECRET))
    const worker: Worker = { fetch }
    const loaded: Worker = { fetch: fetchHandler(async ({ SECRET }: Env, _context: Context) => makeReceiver(SECRET)) }
    expectTypeOf([worker, loaded]).toBeArray()
    // @ts-expect-error the function needs the environment
    fetch(new Request('http://localhost'))
    // @ts-expect-error another environment
    const wrong: { fetch(request: Request, env: { OTHER: string }): Promise<Response> } = { fetch }
    expectTypeOf(wrong).toBeObject()
  })

  test('Hono, whose bindings make the receiver', () => {
    type Env = { Bindings: { SECRET: string } }
    const app = new Hono<Env>()
    app.post(
      '/webhooks/media',
      honoHandler<Env>((c) => makeReceiver(c.env.SECRET)),
    )
    app.post(
      '/webhooks/media',
      honoHandler((c) => makeReceiver(c.env.SECRET)),
    )
  })

  test('Next.js, with after', () => {
    type Handler = (request: Request, context: { params: Promise<object> }) => Promise<Response>
    const after = <T>(_task: Promise<T> | (() => T)): void => {}
    const POST: Handler = fetchHandler(() => makeReceiver('a secret'), { waitUntil: after })
    expectTypeOf(POST).toBeFunction()
  })
})

describe('the adapters', () => {
  test('do not compile without a receiver', () => {
    // @ts-expect-error a receiver is required
    expressHandler()
    // @ts-expect-error options are not a receiver
    honoHandler({ verify: receiver })
    // @ts-expect-error a function is not a receiver
    nodeHandler(receiver.receive)
    // @ts-expect-error undefined is not a receiver
    koaHandler(undefined)
    // @ts-expect-error options are required
    fastify().register(fastifyReceiver)
    // @ts-expect-error a receiver is required
    fastify().register(fastifyReceiver, { url: '/webhooks/media' })
    // @ts-expect-error a path is required
    fastify().register(fastifyReceiver, { receiver })
    // @ts-expect-error no such option
    fastify().register(fastifyReceiver, { receiver, path: '/webhooks/media' })
    // @ts-expect-error undefined is not a receiver
    fetchHandler(undefined)
    // @ts-expect-error the function makes no receiver
    fetchHandler(() => undefined)
    // @ts-expect-error a promise is not a receiver
    fetchHandler(Promise.resolve(receiver))
    // @ts-expect-error there is no such option
    fetchHandler(receiver, { waituntil: () => {} })
  })
})
