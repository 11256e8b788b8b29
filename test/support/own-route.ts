import type { RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import Router from '@koa/router'
import express from 'express'
import fastify, { type FastifyInstance } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { expressHandler } from '../../adapters/express.ts'
import { fastifyReceiver } from '../../adapters/fastify.ts'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { koaHandler } from '../../adapters/koa.ts'
import { nodeHandler } from '../../adapters/node.ts'
import { ownAnswer } from '../contract/suites/adapter/own-route.ts'
import { type AdapterName, express4, fastify4, koa2, type Mount, mountListener, type Receives } from './mounts.ts'

const path = '/webhooks/media'

const inExpress =
  (create: typeof express): Mount =>
  (receiver) => {
    const app = create()
    app.post(path, expressHandler(receiver))
    app.get(path, (_request, response) => void response.send(ownAnswer))
    return mountListener(app)
  }

const inKoa =
  (App: typeof Koa): Mount =>
  (receiver) => {
    const router = new Router()
    router.post(path, koaHandler(receiver))
    router.get(path, (context) => {
      context.body = ownAnswer
    })
    return mountListener(new App().use(router.routes()).callback())
  }

type AddRoutes = (app: FastifyInstance, receiver: Receives) => unknown

const own = (app: FastifyInstance) => app.get(path, async () => ownAnswer)
const plugin = (app: FastifyInstance, { receive }: Receives) =>
  app.register(fastifyReceiver, { receiver: { receive, close: async () => ({ unfinished: [] }) }, url: path })

const inFastify =
  (create: typeof fastify, addRoutes: AddRoutes): Mount =>
  async (receiver) => {
    const app = create({ forceCloseConnections: true })
    await addRoutes(app, receiver)
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url: origin + path, close: () => app.close() }
  }

const orders: Readonly<Record<string, AddRoutes>> = {
  'before the plugin': (app, receiver) => {
    own(app)
    plugin(app, receiver)
  },
  'after the plugin': (app, receiver) => {
    plugin(app, receiver)
    own(app)
  },
  'after the plugin has loaded': async (app, receiver) => {
    await plugin(app, receiver)
    own(app)
  },
}

const bothFastify = Object.entries(orders).flatMap(([order, addRoutes]): [string, Mount][] => [
  [`fastify5, ${order}`, inFastify(fastify, addRoutes)],
  [`fastify4, ${order}`, inFastify(fastify4, addRoutes)],
])

const node: Mount = (receiver) => {
  const handle = nodeHandler(receiver)
  const listener: RequestListener = (request, response) =>
    request.method === 'GET' ? response.end(ownAnswer) : handle(request, response)
  return mountListener(listener)
}

const hono: Mount = (receiver) => {
  const app = new Hono().post(path, honoHandler(receiver)).get(path, (context) => context.text(ownAnswer))
  return mountListener(getRequestListener(app.fetch))
}

const web: Mount = (receiver) => {
  const handle = fetchHandler(receiver)
  return mountListener(
    getRequestListener((request) => (request.method === 'GET' ? new Response(ownAnswer) : handle(request))),
  )
}

const others: Record<Exclude<AdapterName, 'fastify5' | 'fastify4'>, Mount> = {
  node,
  express5: inExpress(express),
  express4: inExpress(express4),
  koa3: inKoa(Koa),
  koa2: inKoa(koa2),
  'hono-node': hono,
  fetch: web,
}

/** Mounts of every adapter beside a GET of the application on the same path. */
export const mountsBesideGet: readonly (readonly [string, Mount])[] = [...Object.entries(others), ...bothFastify]
