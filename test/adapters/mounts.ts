import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { expressHandler } from '../../adapters/express.ts'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { nodeHandler } from '../../adapters/node.ts'
import type { Receiver } from '../../src/index.ts'
import type { Mounted } from '../../src/testing/contract/adapter.ts'

const path = '/webhooks/media'

/** A receiver, or a stub of one. */
export type Receives = Pick<Receiver, 'receive'>

/** Mounts a receiver on a new server, on a free port unless one is given. */
export type Mount = (receiver: Receives, port?: number) => Promise<Mounted>

/** Express 4. The alias has no types; the tests use only what both versions have. */
export const express4: typeof express = createRequire(import.meta.url)('express4')

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

/** The names of the adapters. */
export type AdapterName = 'node' | 'express5' | 'express4' | 'hono-node' | 'fetch'

/** Mounts every adapter as its users do. */
export const mounts: Record<AdapterName, Mount> = {
  node: (receiver, port) => serve(nodeHandler(receiver), port),
  express5: inExpress(express),
  express4: inExpress(express4),
  'hono-node': (receiver, port) => {
    const app = new Hono()
    app.all(path, honoHandler(receiver))
    return serve(getRequestListener(app.fetch), port)
  },
  fetch: (receiver, port) => serve(getRequestListener(fetchHandler(receiver)), port),
}
