import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { expressHandler } from '../../adapters/express.ts'
import { fastifyReceiver } from '../../adapters/fastify.ts'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { koaHandler } from '../../adapters/koa.ts'
import { nodeHandler } from '../../adapters/node.ts'
import type { Receiver } from '../../src/index.ts'
import type { Mounted } from '../../src/testing/contract/adapter.ts'

const require = createRequire(import.meta.url)
const path = '/webhooks/media'

/** A receiver, or a stub of one. */
export type Receives = Pick<Receiver, 'receive'>

/** Mounts a receiver on a new server, on a free port unless one is given. */
export type Mount = (receiver: Receives, port?: number) => Promise<Mounted>

/** Express 4. The alias has no types; the tests use only what both versions have. */
export const express4: typeof express = require('express4')
/** Fastify 4 and Koa 2, without types of their own either. */
export const fastify4: typeof fastify = require('fastify4')
export const koa2: typeof Koa = require('koa2')

/** Serves a listener of node:http on 127.0.0.1. */
export async function serve(listener: RequestListener, port = 0): Promise<Mounted> {
  const server = createServer(listener).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

const inExpress =
  (create: typeof express): Mount =>
  (receiver, port) => {
    const app = create()
    app.all(path, expressHandler(receiver))
    return serve(app, port)
  }

const inFastify =
  (create: typeof fastify): Mount =>
  async (receiver, port = 0) => {
    const app = create({ forceCloseConnections: true })
    app.register(fastifyReceiver, { receiver: { ...receiver, close: unclosed }, url: path })
    const url = await app.listen({ port, host: '127.0.0.1' })
    return { url: url + path, close: () => app.close() }
  }

// The test closes its receiver.
const unclosed = async () => ({ unfinished: [] })

const inKoa =
  (App: typeof Koa): Mount =>
  (receiver, port) => {
    const app = new App()
    // Koa would print every connection that a test cuts.
    app.silent = true
    app.use(koaHandler(receiver))
    return serve(app.callback(), port)
  }

/** The names of the adapters. */
export type AdapterName =
  | 'node'
  | 'express5'
  | 'express4'
  | 'fastify5'
  | 'fastify4'
  | 'koa3'
  | 'koa2'
  | 'hono-node'
  | 'fetch'

/** Mounts every adapter as its users do. */
export const mounts: Record<AdapterName, Mount> = {
  node: (receiver, port) => serve(nodeHandler(receiver), port),
  express5: inExpress(express),
  express4: inExpress(express4),
  fastify5: inFastify(fastify),
  fastify4: inFastify(fastify4),
  koa3: inKoa(Koa),
  koa2: inKoa(koa2),
  'hono-node': (receiver, port) => {
    const app = new Hono()
    app.all(path, honoHandler(receiver))
    return serve(getRequestListener(app.fetch), port)
  },
  fetch: (receiver, port) => serve(getRequestListener(fetchHandler(receiver)), port),
}
