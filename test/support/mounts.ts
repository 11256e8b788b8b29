import type { RequestListener } from 'node:http'
import { createRequire } from 'node:module'
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
import type { Mounted } from '../contract/suites/adapter.ts'
import { listen } from './listen.ts'

const require = createRequire(import.meta.url)
const path = '/webhooks/media'

/** A receiver, or a stub of one. */
export type Receives = Pick<Receiver, 'receive'>

/** Mounts a receiver on a new server, on a free port unless one is given. */
export type Mount = (receiver: Receives, port?: number) => Promise<Mounted>

/** The oldest Express that is supported. The alias has no types; the tests use only what both versions have. */
export const express4: typeof express = require('express4')
/** The oldest Fastify and Koa that are supported, without types of their own either. */
export const fastify4: typeof fastify = require('fastify4')
export const koa2: typeof Koa = require('koa2')

/** Serves a listener of node:http on 127.0.0.1. */
export async function mountListener(listener: RequestListener, port = 0): Promise<Mounted> {
  const { origin, close } = await listen(listener, port)
  return { url: origin + path, close }
}

const inExpress =
  (create: typeof express): Mount =>
  (receiver, port) => {
    const app = create()
    app.all(path, expressHandler(receiver))
    return mountListener(app, port)
  }

const inFastify =
  (create: typeof fastify): Mount =>
  async (receiver, port = 0) => {
    const app = create({ forceCloseConnections: true, http: { rejectNonStandardBodyWrites: true } })
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
    return mountListener(app.callback(), port)
  }

const inHono =
  (App: typeof Hono): Mount =>
  (receiver, port) => {
    const app = new App()
    app.all(path, honoHandler(receiver))
    return mountListener(getRequestListener(app.fetch), port)
  }

/** Mounts the adapter in the oldest Hono that is supported. */
export const inOldestHono: Mount = inHono(require('hono-oldest').Hono)

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
  node: (receiver, port) => mountListener(nodeHandler(receiver), port),
  express5: inExpress(express),
  express4: inExpress(express4),
  fastify5: inFastify(fastify),
  fastify4: inFastify(fastify4),
  koa3: inKoa(Koa),
  koa2: inKoa(koa2),
  'hono-node': inHono(Hono),
  fetch: (receiver, port) => mountListener(getRequestListener(fetchHandler(receiver)), port),
}
